//! `kduel kernels build|diff|drop`: kernels from source.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use super::kernels::{KernelsContext, load_lock, parse_all, print, table};
use crate::analyse;
use crate::config::{KernelSpec, SourceSpec};
use crate::fault::{Failure, FailureClass};
use crate::provision::Kernel;
use crate::provision::source::{Built, OBJECTS_KEPT, sections};
use crate::text::{self, count};

/// Builds kernels, and says where they are.
pub fn build(
    specs: &[String],
    context: &KernelsContext<'_>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    for (name, spec) in sources(specs, context)? {
        let kernel = context.provisioner.kernel(name, &KernelSpec::Source(spec), None)?;
        let digest: String = kernel.image_sha256.chars().take(12).collect();
        let line = format!("{}  {digest}  {}\n", kernel.release, text::escape(&kernel.origin));
        print(out, &line)?;
        print(out, &format!("  {}\n", kernel.image.display()))?;
    }
    Ok(())
}

/// Says of each kernel whether it is built, without building any; whether all are.
pub fn check(
    specs: &[String],
    context: &KernelsContext<'_>,
    out: &mut dyn Write,
) -> Result<bool, Failure> {
    let mut all = true;
    for (name, spec) in sources(specs, context)? {
        let built = context.provisioner.find_built(&spec)?;
        let state = match &built {
            Some(built) => format!("built, {}", text::escape(&built.about.release)),
            None => "not built".to_owned(),
        };
        all &= built.is_some();
        print(out, &format!("{}: {state}\n", text::escape(name)))?;
    }
    Ok(all)
}

/// These kernels, all of which have to be from source.
fn sources<'a>(
    specs: &'a [String],
    context: &KernelsContext<'_>,
) -> Result<Vec<(&'a str, Box<SourceSpec>)>, Failure> {
    let of = |(name, spec)| match spec {
        KernelSpec::Source(source) => Ok((name, source)),
        _ => Err(Failure::new(FailureClass::Usage, format!("{name} is no kernel from source"))
            .hint(format!("to make it ready to boot: kduel kernels fetch {name}"))),
    };
    parse_all(specs, context)?.into_iter().map(of).collect()
}

/// Deletes what was kept of builds.
pub fn discard(
    kernels: bool,
    context: &KernelsContext<'_>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let dropped = count(context.provisioner.drop_builds(kernels)?, "folder");
    print(out, &format!("deleted {dropped} (at most {OBJECTS_KEPT} kernels' objects are kept)\n"))
}

/// In what two kernels differ.
pub fn diff(
    names: [&String; 2],
    context: &KernelsContext<'_>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let mut lock = load_lock(context)?;
    let words: Vec<String> = names.into_iter().cloned().collect();
    let mut kernels = Vec::new();
    for (name, spec) in parse_all(&words, context)? {
        let pinned = lock.as_ref().is_some_and(|lock| lock.get(name, &spec).is_some());
        let lock = if pinned { lock.as_mut() } else { None };
        kernels.push(context.provisioner.kernel(name, &spec, lock)?);
    }
    let [a, b] = kernels.as_slice() else { return Ok(()) };
    let mut rows = vec![[String::new(), words[0].clone(), words[1].clone()]];
    for ([name, of_a], [_, of_b]) in facts(a, context)?.into_iter().zip(facts(b, context)?) {
        rows.push([name, of_a, of_b]);
    }
    print(out, &table(&rows))?;
    print(out, &format!("\n{}", config(a, b)?))?;
    print(out, &sizes(a, b, context)?)
}

fn facts(kernel: &Kernel, context: &KernelsContext<'_>) -> Result<Vec<[String; 2]>, Failure> {
    let built = of(kernel, context)?;
    let about = built.map(|built| built.about);
    let row = |name: &str, value: String| [name.to_owned(), value];
    let compiler = about.as_ref().map(|about| about.compiler.clone());
    let flags =
        about.as_ref().map(|about| about.cflags.join(" ")).filter(|flags| !flags.is_empty());
    Ok(vec![
        row("release", kernel.release.clone()),
        row("from", kernel.origin.clone()),
        row("image SHA-256", kernel.image_sha256.chars().take(12).collect()),
        row("compiler", compiler.unwrap_or_else(|| "not built here".to_owned())),
        row("compiler flags", flags.unwrap_or_else(|| "the kernel's own".to_owned())),
    ])
}

fn config(a: &Kernel, b: &Kernel) -> Result<String, Failure> {
    let (Some(of_a), Some(of_b)) = (&a.config, &b.config) else {
        return Ok("config: not known of both\n".to_owned());
    };
    let read = |path: &std::path::Path| {
        let text = std::fs::read_to_string(path);
        text.map(|text| analyse::options(&text))
            .map_err(|error| Failure::host_io("read", path, &error))
    };
    let differences = analyse::differences(&read(of_a)?, &read(of_b)?);
    if differences.is_empty() {
        return Ok("config: the same\n".to_owned());
    }
    let rows: Vec<[String; 3]> =
        differences.into_iter().map(|each| [each.option, each.base, each.value]).collect();
    Ok(format!("config: {} differ\n{}", count(rows.len(), "option"), table(&rows)))
}

fn sizes(a: &Kernel, b: &Kernel, context: &KernelsContext<'_>) -> Result<String, Failure> {
    let of_vmlinux = |kernel: &Kernel| -> Result<Option<BTreeMap<String, u64>>, Failure> {
        of(kernel, context)?.map(|built| sections(&built.dir.join("vmlinux"))).transpose()
    };
    let (Some(of_a), Some(of_b)) = (of_vmlinux(a)?, of_vmlinux(b)?) else {
        return Ok(String::new());
    };
    let names: BTreeSet<&String> = of_a.keys().chain(of_b.keys()).collect();
    let total = |sizes: &BTreeMap<String, u64>| sizes.values().sum::<u64>();
    let differing = names.into_iter().map(|name| {
        let size = |sizes: &BTreeMap<String, u64>| sizes.get(name).copied().unwrap_or(0);
        (name.as_str(), size(&of_a), size(&of_b))
    });
    let differing = differing.filter(|(_, a, b)| a != b);
    let rows: Vec<[String; 4]> = differing
        .chain([("all that is loaded", total(&of_a), total(&of_b))])
        .map(|(name, a, b)| {
            let change = i128::from(b) - i128::from(a);
            [name.to_owned(), a.to_string(), b.to_string(), format!("{change:+}")]
        })
        .collect();
    Ok(format!("\nvmlinux: sections of another size, in bytes\n{}", table(&rows)))
}

/// What is known of a kernel beyond others, if it was built here.
pub fn rows(kernel: &Kernel, context: &KernelsContext<'_>) -> Result<Vec<[String; 2]>, Failure> {
    let Some(Built { dir, about }) = of(kernel, context)? else { return Ok(Vec::new()) };
    let how = if about.incremental { " with the objects of its base" } else { "" };
    let rows = [
        ("compiler", about.compiler),
        ("compiler flags", about.cflags.join(" ")),
        ("built", format!("in {} s{how}", about.seconds)),
        ("vmlinux", dir.join("vmlinux").display().to_string()),
        ("System.map", dir.join("System.map").display().to_string()),
        ("log", dir.join("build.log").display().to_string()),
    ];
    let told = rows.into_iter().filter(|(_, value)| !value.is_empty());
    Ok(told.map(|(name, value)| [name.to_owned(), value]).collect())
}

fn of(kernel: &Kernel, context: &KernelsContext<'_>) -> Result<Option<Built>, Failure> {
    let all = Built::all(context.provisioner.cache())?;
    Ok(all.into_iter().find(|built| kernel.image.starts_with(&built.dir)))
}
