//! From a suite, a flavour and perhaps a version to the packages that make up that kernel.

use super::apt::{Apt, Package};
use super::version;
use crate::config::DebianSpec;
use crate::fault::{Failure, FailureClass};
use crate::text;

/// The packages of the kernel that `spec` names, the one with the kernel's name first.
///
/// # Errors
/// If the suite has no such kernel (what it has instead is named), or apt fails.
pub fn resolve(apt: &Apt, spec: &DebianSpec) -> Result<Vec<Package>, Failure> {
    let image = match &spec.version {
        None => match current(apt, spec)? {
            Some(image) => Some(image),
            None => newest(images(apt, spec)?, |_| true),
        },
        Some(wanted) => newest(images(apt, spec)?, |found| version::matches(found, wanted)),
    };
    let image = match image {
        Some(image) => image,
        None => return Err(not_found(apt, spec)?),
    };
    let parts = parts(&image);
    let names: Vec<String> = parts.iter().map(|(name, _)| name.clone()).collect();
    let known = apt.show(&names)?;
    let mut packages = vec![image];
    for (name, version) in parts {
        let part = known.iter().find(|found| found.name == name && found.version == version);
        packages.push(part.cloned().ok_or_else(|| {
            Failure::new(
                FailureClass::KernelUnusable,
                format!(
                    "{} needs {name}={version}, which {} does not have",
                    packages[0].name, spec.suite
                ),
            )
            .hint(
                "the archive may be in the middle of an update; try again later, or give version:",
            )
        })?);
    }
    Ok(packages)
}

/// The newest version of this flavour in the suite, whatever version the spec asks for.
///
/// # Errors
/// If apt fails.
pub fn newest_of_flavour(apt: &Apt, spec: &DebianSpec) -> Result<Option<Package>, Failure> {
    Ok(newest(images(apt, spec)?, |_| true))
}

/// What the suite's meta-package `linux-image-FLAVOUR` depends on.
fn current(apt: &Apt, spec: &DebianSpec) -> Result<Option<Package>, Failure> {
    let meta = newest(apt.show(&[format!("linux-image-{}", spec.flavour)])?, |_| true);
    let Some((name, version)) = meta.and_then(|meta| {
        meta.depends.into_iter().find(|(name, _)| abi(name, &spec.flavour).is_some())
    }) else {
        return Ok(None);
    };
    Ok(newest(apt.show(&[name])?, |found| version.as_deref().is_none_or(|exact| exact == found)))
}

/// Every kernel of this flavour in the suite.
fn images(apt: &Apt, spec: &DebianSpec) -> Result<Vec<Package>, Failure> {
    let names = apt.names("linux-image-")?;
    let of_flavour = names.into_iter().filter(|name| abi(name, &spec.flavour).is_some());
    apt.show(&of_flavour.collect::<Vec<_>>())
}

fn newest(packages: Vec<Package>, wanted: impl Fn(&str) -> bool) -> Option<Package> {
    packages
        .into_iter()
        .filter(|package| wanted(&package.version))
        .max_by(|a, b| version::compare(&a.version, &b.version))
}

/// `6.1.0-50` of `linux-image-6.1.0-50-cloud-amd64` for the flavour `cloud-amd64`. `None` for
/// meta-packages and for other flavours, `-unsigned` and `-dbg` among them.
fn abi<'a>(name: &'a str, flavour: &str) -> Option<&'a str> {
    let abi = name.strip_prefix("linux-image-")?.strip_suffix(flavour)?.strip_suffix('-')?;
    let is_number = |part: &str| part.starts_with(|c: char| c.is_ascii_digit());
    abi.split('-').all(is_number).then_some(abi)
}

/// Since 7.x the image is a shell: kernel, modules and config are in packages it depends on.
fn parts(image: &Package) -> Vec<(String, String)> {
    let is_part = |name: &str| {
        ["linux-binary-", "linux-modules-", "linux-base-"].iter().any(|prefix| {
            name.strip_prefix(prefix)
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        })
    };
    let depends = image.depends.iter().filter(|(name, _)| is_part(name));
    depends.filter_map(|(name, version)| Some((name.clone(), version.clone()?))).collect()
}

fn not_found(apt: &Apt, spec: &DebianSpec) -> Result<Failure, Failure> {
    let DebianSpec { suite, flavour, version } = spec;
    let mut there = images(apt, spec)?;
    there.sort_by(|a, b| version::compare(&b.version, &a.version));
    let wanted = version.as_ref().map_or(String::new(), |version| format!(" of version {version}"));
    let failure = Failure::new(
        FailureClass::KernelUnusable,
        format!("the Debian suite {suite} has no kernel linux-image-*-{flavour}{wanted}"),
    );
    if there.is_empty() {
        let names = apt.names("linux-image-")?;
        let flavours = flavours(&names);
        let near = text::nearest(flavour, flavours.iter().copied())
            .map_or(String::new(), |near| format!("; did you mean {near}?"));
        return Ok(failure.hint(format!("flavours of {suite}: {}{near}", flavours.join(", "))));
    }
    let versions: Vec<&str> =
        there.iter().map(|package| package.version.as_str()).take(20).collect();
    Ok(failure.hint(format!("versions of {flavour} in {suite}: {}", versions.join(", "))))
}

/// The flavours that meta-packages are named after.
fn flavours(names: &[String]) -> Vec<&str> {
    names
        .iter()
        .filter_map(|name| name.strip_prefix("linux-image-"))
        .filter(|flavour| !flavour.starts_with(|c: char| c.is_ascii_digit()))
        .filter(|flavour| {
            !["-dbg", "-unsigned", "-template"].iter().any(|end| flavour.ends_with(end))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flavour_is_matched_whole() {
        assert_eq!(abi("linux-image-6.1.0-50-cloud-amd64", "cloud-amd64"), Some("6.1.0-50"));
        assert_eq!(abi("linux-image-7.2.13+deb14-amd64", "amd64"), Some("7.2.13+deb14"));
        assert_eq!(abi("linux-image-6.1.0-50-cloud-amd64", "amd64"), None);
        assert_eq!(abi("linux-image-6.1.0-50-amd64-unsigned", "amd64"), None);
        assert_eq!(abi("linux-image-6.1.0-50-amd64-dbg", "amd64"), None);
        assert_eq!(abi("linux-image-amd64", "amd64"), None);
        assert_eq!(abi("linux-image-cloud-amd64", "amd64"), None);
    }

    #[test]
    fn of_several_versions_the_newest_that_matches_is_taken() {
        let package = |version: &str| Package {
            name: "linux-image-1-amd64".to_owned(),
            version: version.to_owned(),
            depends: Vec::new(),
            sha256: String::new(),
            size_bytes: 0,
        };
        let all = ["6.12.9-1", "6.12.43-1", "6.12.10-1"].map(package).to_vec();
        let chosen = newest(all.clone(), |_| true).unwrap();
        assert_eq!(chosen.version, "6.12.43-1");
        let chosen = newest(all, |found| version::matches(found, "6.12.10")).unwrap();
        assert_eq!(chosen.version, "6.12.10-1");
    }

    #[test]
    fn the_shell_of_a_split_kernel_names_its_parts() {
        let exact = |name: &str| (name.to_owned(), Some("7.2.13-1".to_owned()));
        let image = Package {
            name: "linux-image-7.2.13+deb14-amd64".to_owned(),
            version: "7.2.13-1".to_owned(),
            depends: vec![
                ("kmod".to_owned(), None),
                ("linux-base".to_owned(), None),
                exact("linux-base-7.2.13+deb14-amd64"),
                exact("linux-binary-7.2.13+deb14-amd64"),
                exact("linux-modules-7.2.13+deb14-amd64"),
            ],
            sha256: String::new(),
            size_bytes: 0,
        };
        let names: Vec<String> = parts(&image).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), 3);
        assert!(!names.contains(&"linux-base".to_owned()));
    }
}
