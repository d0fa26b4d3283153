//! Call chains as folded lines and as a differential flame graph.

use inferno::flamegraph::{self, Options, TextTruncateDirection};

use crate::analyse::{ChainSums, shared_chains};

/// Chains of one workload, by side, the base first.
#[derive(Debug, Clone)]
pub struct WorkloadChains {
    /// What stands before its chains where there are several.
    pub workload: String,
    /// What is counted: `instructions`, or `ns` of sampled time.
    pub counted: &'static str,
    /// Names of the sides with what they executed.
    pub sides: Vec<(String, ChainSums)>,
}

/// One line for each chain and side: names separated by semicolons, the side's among them, and
/// instructions per operation.
pub fn folded(workloads: &[WorkloadChains]) -> String {
    let mut lines = String::new();
    for each in workloads {
        for (side, sums) in &each.sides {
            for chain in sums.chains.keys() {
                let names =
                    prefix(workloads, each).chain([side.clone()]).chain(chain.iter().cloned());
                lines += &format!("{} {}\n", joined(names), trimmed(sums.per_op(chain)));
            }
        }
    }
    lines
}

/// A differential flame graph.
#[derive(Debug, Clone)]
pub struct FlameGraph {
    /// What is compared.
    pub title: String,
    /// How it is to be read.
    pub key: String,
    /// The graph with both; needs no network.
    pub svg: String,
}

/// As SVG: a frame is as wide as what the side `compared` executes, red where the function itself
/// executes more than in the base, blue where it executes less. What one side calls a level deeper
/// is drawn beside its caller, as on the other.
///
/// # Errors
///
/// What the library says, if it cannot draw.
pub fn flame_graph(workloads: &[WorkloadChains], compared: &str) -> Result<FlameGraph, String> {
    let mut lines = Vec::new();
    let (mut base, mut gone) = ("", 0);
    for each in workloads {
        let [(name, first), others @ ..] = &each.sides[..] else { continue };
        let Some((_, second)) = others.iter().find(|(side, _)| side == compared) else { continue };
        base = name;
        for (names, own) in shared_chains(&first.tree(), &second.tree()) {
            let names = joined(prefix(workloads, each).chain(names));
            let [a, b] = own.map(|thousandths| (thousandths + 500) / 1000);
            gone += if b == 0 { a } else { 0 };
            lines.push(format!("{names} {a} {b}"));
        }
    }
    let counted = workloads.first().map_or("instructions", |each| each.counted);
    let mut options = Options::default();
    let title = format!("{compared} against {base}: {counted} per operation");
    let key = format!(
        "as wide as in {compared}; red: the function itself executes more than in {base}, blue: less; \
         chains that only {base} has are not drawn: {gone} {counted}"
    );
    options.title.clone_from(&title);
    options.subtitle = Some(key.clone());
    options.count_name = format!("{counted} per operation");
    options.text_truncate_direction = TextTruncateDirection::Right;
    let mut svg = Vec::new();
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut svg)
        .map_err(|error| error.to_string())?;
    Ok(FlameGraph { title, key, svg: String::from_utf8_lossy(&svg).into_owned() })
}

fn prefix<'a>(
    all: &[WorkloadChains],
    each: &'a WorkloadChains,
) -> impl Iterator<Item = String> + 'a {
    (all.len() > 1).then(|| each.workload.clone()).into_iter()
}

fn joined(names: impl Iterator<Item = String>) -> String {
    names.map(|name| name.replace(';', "_")).collect::<Vec<_>>().join(";")
}

/// Three decimals at most: a chain of one instruction in a thousand operations still shows.
fn trimmed(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(ops: u64, chains: &[(&str, u64)]) -> ChainSums {
        let chain =
            |(names, sum): &(&str, u64)| (names.split(';').map(str::to_owned).collect(), *sum);
        ChainSums { ops, chains: chains.iter().map(chain).collect(), ..ChainSums::default() }
    }

    fn example() -> Vec<WorkloadChains> {
        let base = sums(1000, &[("own;entry", 4000), ("own;entry;old", 2500)]);
        let patched = sums(2000, &[("own;entry", 8000), ("own;entry;new", 3)]);
        vec![WorkloadChains {
            workload: "fork-exit".into(),
            counted: "instructions",
            sides: vec![("base".into(), base), ("patched".into(), patched)],
        }]
    }

    #[test]
    fn every_chain_of_every_side_has_a_line() {
        let wanted = "base;own;entry 4\nbase;own;entry;old 2.5\n\
                      patched;own;entry 4\npatched;own;entry;new 0.002\n";
        assert_eq!(folded(&example()), wanted);
        let mut two = example();
        two.push(WorkloadChains { workload: "pipe bytes=1;x".into(), ..two[0].clone() });
        assert!(folded(&two).ends_with("pipe bytes=1_x;patched;own;entry;new 0.002\n"));
    }

    #[test]
    fn the_flame_graph_says_what_is_compared() {
        let svg = flame_graph(&example(), "patched").unwrap().svg;
        assert!(svg.contains("patched against base: instructions per operation"));
        assert!(svg.contains("<title>entry (4 instructions per operation"), "{svg}");
        assert!(svg.contains("not drawn: 3 instructions"), "{svg}");
        assert!(!svg.contains("http://") || !svg.contains("<script src"), "nothing is fetched");
    }
}
