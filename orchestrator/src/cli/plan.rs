//! `kduel plan`: what a run would do. Touches nothing.

use std::time::Duration;

use kduel_protocol::{Knobs, Topology, TrialSpec};

use super::sight;
use crate::analyse::{self, looks_at};
use crate::boot::Accel;
use crate::host::topology::HostTopology;
use crate::plan::placement::picture;
use crate::plan::{
    self, Block, ExactTerms, Measure, NoPlace, Pairing, Plan, PlannedExperiment, PlannedSide,
    Statistic, Turn, cost, machine_of, series_label, shape,
};
use crate::text::{count, escape};
use crate::units;

/// Blocks shown of each experiment.
const BLOCKS_SHOWN: usize = 6;

/// Gives the QEMU command line of a side, program first.
pub type CommandLineOf<'a> = &'a dyn Fn(&PlannedExperiment, &PlannedSide) -> Vec<String>;

/// A plan for people. `accel` is what the guests would run on, as far as is known; `budget` what may be
/// spent on each experiment of a timed run, what the plan itself takes if absent.
pub fn render(
    plan: &Plan,
    accel: Accel,
    budget: Option<Duration>,
    host: &HostTopology,
    command_line: CommandLineOf<'_>,
) -> String {
    let is_exact = plan.measure == Measure::Instructions;
    let total = cost::of_plan(plan, accel);
    let mut out = format!(
        "plan: {}, {} {}, about {} {} {}\nseed: {}\n",
        count(plan.experiments.len(), "experiment"),
        count(total.boots, "guest"),
        if is_exact { "side by side" } else { "one after the other" },
        units::duration(total.total),
        if is_exact { "of processor time with" } else { "with" },
        accel.name(),
        plan.seed,
    );
    if plan.quick {
        out += "quick: one look at the end, with Student's t\n";
    }
    for experiment in &plan.experiments {
        let looks = match plan.measure {
            Measure::Time if plan.statistic == Statistic::Anytime => "after every pair".to_owned(),
            Measure::Time => looks(&looks_at(plan, experiment)),
            Measure::Instructions => String::new(),
        };
        let sights = sights(plan, experiment, accel, budget);
        let placement = match plan.measure {
            Measure::Time => placement(host, experiment),
            Measure::Instructions => String::new(),
        };
        let sights = placement + &sights;
        out += &render_experiment(experiment, &looks, &sights, accel, command_line);
    }
    out
}

fn render_experiment(
    experiment: &PlannedExperiment,
    looks: &str,
    sights: &str,
    accel: Accel,
    command_line: CommandLineOf<'_>,
) -> String {
    let cost = cost::of_experiment(experiment, accel);
    let most = if looks.is_empty() { "" } else { "up to " };
    let pairs = match experiment.exact {
        Some(_) => "the first trial of one guest once more".to_owned(),
        None => format!("{most}{}", count(experiment.blocks.len(), "pair")),
    };
    let mut out = format!(
        "\nexperiment {}: {}, {pairs}, about {}\n",
        experiment.name,
        count(cost.boots, "guest"),
        units::duration(cost.total),
    );
    out += &section("topology", topology(&experiment.topology_name, &experiment.topology));
    if let Some(terms) = &experiment.exact {
        out += &section("CPU", std::iter::once(machine_of(experiment, terms)));
    }
    out += &section("sides", experiment.sides.iter().map(side));
    let trials = experiment.trials.iter();
    out += &section("trials", trials.map(|spec| trial(spec, experiment.exact.as_ref(), accel)));
    if !experiment.files.is_empty() {
        let files = experiment.files.iter();
        out += &section("files", files.map(|file| format!("{} -> {}", file.host, file.guest)));
    }
    if !experiment.monitors.is_empty() {
        let names: Vec<&str> = experiment.monitors.iter().map(|monitor| monitor.name()).collect();
        out += &format!("  monitors  {}\n", names.join(", "));
    }
    if !looks.is_empty() {
        out += &format!("  looks     {looks}; ends at the first that decides every series\n");
    }
    out += sights;
    out += &section("order", schedule(experiment));
    let lines = experiment.sides.iter().map(|side| {
        let words: Vec<String> =
            command_line(experiment, side).iter().map(|word| quote(word)).collect();
        format!("{}: {}", side.name, words.join(" "))
    });
    out + &section("QEMU", lines)
}

/// What a timed run could show, and what its time is best spent on.
fn sights(
    plan: &Plan,
    experiment: &PlannedExperiment,
    accel: Accel,
    budget: Option<Duration>,
) -> String {
    if plan.measure != Measure::Time || plan.calibrate {
        return String::new();
    }
    let all = analyse::sights(plan, experiment, accel);
    let budget = budget.unwrap_or_else(|| cost::of_experiment(experiment, accel).total);
    section("detects", all.iter().map(sight::line))
        + &section("budget", sight::budget(plan, experiment, accel, budget).into_iter())
}

/// What of the host the guests would have.
fn placement(host: &HostTopology, experiment: &PlannedExperiment) -> String {
    if host.cpus.is_empty() {
        return String::new();
    }
    let lines = if experiment.placements.is_empty() {
        let refused = match plan::settle(experiment, host, false) {
            Err(NoPlace::Room(room)) => Some(format!("refused without --overcommit: {room}")),
            Err(shared) => Some(format!("refused: {shared}")),
            Ok(_) => None,
        };
        refused.into_iter().collect()
    } else {
        picture(host, &experiment.placements)
    };
    let how = match experiment.pairing {
        Pairing::Duet => "duet: all guests of a block at once, the first in its order as guest a",
        Pairing::Auto | Pairing::Interleave => "interleave: one guest after the other",
    };
    section("pairing", std::iter::once(how.to_owned())) + &section("placement", lines.into_iter())
}

/// When a run may end before its last pair; empty if it may not.
fn looks(at: &[usize]) -> String {
    let at: Vec<String> = at.iter().map(ToString::to_string).collect();
    if at.len() > 1 { format!("at {} pairs", at.join(", ")) } else { String::new() }
}

/// A titled list, its lines below one another.
fn section(title: &str, lines: impl Iterator<Item = String>) -> String {
    let mut out = String::new();
    for (index, line) in lines.enumerate() {
        let title = if index == 0 { title } else { "" };
        out += &format!("  {title:<9} {}\n", escape(&line));
    }
    out
}

fn topology(name: &str, topology: &Topology) -> impl Iterator<Item = String> {
    let first = format!("{name}: {}", shape::summary(topology));
    std::iter::once(first).chain(shape::details(topology))
}

fn side(side: &PlannedSide) -> String {
    let knobs = knobs(&side.knobs);
    let knobs = if knobs.is_empty() { String::new() } else { format!(", {}", knobs.join(", ")) };
    format!("{}: {}{knobs}", side.name, side.kernel_name)
}

/// Every knob as `key name=value`.
pub fn knobs(knobs: &Knobs) -> Vec<String> {
    let words = |key: &str, words: &[String]| -> Vec<String> {
        words.iter().map(|word| format!("{key} {word}")).collect()
    };
    let maps = [
        ("sysctl", &knobs.sysctl),
        ("write", &knobs.write),
        ("mount", &knobs.mount),
        ("modparam", &knobs.modparam),
    ];
    let mut shown = words("cmdline", &knobs.cmdline);
    for (key, map) in maps {
        shown.extend(map.iter().map(|(name, value)| format!("{key} {name}={value}")));
    }
    shown.extend(words("cpu-flags", &knobs.cpu_flags));
    shown.extend(words("setup", &knobs.setup));
    shown
}

fn trial(spec: &TrialSpec, exact: Option<&ExactTerms>, accel: Accel) -> String {
    let (what, takes) = match exact {
        Some(terms) => ("window", cost::exact_trial(spec, terms.shift)),
        None => ("iteration", cost::trial(spec, accel)),
    };
    format!(
        "{}: {} after {} of warm-up, about {}",
        series_label(spec),
        count(spec.iterations as usize, what),
        spec.warmup,
        units::duration(takes),
    )
}

fn schedule(experiment: &PlannedExperiment) -> impl Iterator<Item = String> {
    let line = |block: &Block| {
        let name = |turn: &Turn| {
            let name = &experiment.sides.get(turn.side)?.name;
            Some(if turn.sentinel { format!("{name} (sentinel)") } else { name.clone() })
        };
        let at_once = |wave: &Vec<Turn>| -> String {
            wave.iter().filter_map(name).collect::<Vec<_>>().join(" + ")
        };
        let waves: Vec<String> = block.waves(experiment.pairing).iter().map(at_once).collect();
        format!("block {}: {}", block.index + 1, waves.join(", "))
    };
    let shown = experiment.blocks.iter().take(BLOCKS_SHOWN).map(line);
    let rest = experiment.blocks.len().saturating_sub(BLOCKS_SHOWN);
    shown.chain((rest > 0).then(|| format!("… and {}", count(rest, "more block"))))
}

/// A word as a shell needs it.
fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+.,:/@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::placement::place_guests;
    use crate::collect::testing::plan;
    use crate::host::topology::testing::{plain, two_nodes};
    use crate::plan::topology::named;

    /// The plan of a guest on a host, without what other tests show.
    fn planned(name: &str, host: &HostTopology) -> String {
        let mut plan = plan(&["base", "patched"], 6);
        plan.experiments[0].topology = named(name).unwrap();
        plan.experiments[0].topology_name = name.to_owned();
        _ = place_guests(&mut plan, host, false);
        let shown = render(&plan, Accel::Kvm, None, host, &|_, _| vec!["qemu".to_owned()]);
        let from = shown.find("\nexperiment").unwrap();
        shown[from..].split("  detects").next().unwrap().to_owned()
    }

    #[test]
    fn the_picture_of_a_wide_guest_on_a_host_of_two_nodes() {
        insta::assert_snapshot!(planned("numa-q-16", &two_nodes().read()), @r"

        experiment fork: 12 guests, 6 pairs, about 36.0 s
          topology  numa-q-16: 16 CPUs: 4 sockets x 4 cores, 2048 MiB, 4 nodes
                    node  CPUs   memory  distances
                    0     0-3    512M    10 20 20 20
                    1     4-7    512M    20 10 20 20
                    2     8-11   512M    20 20 10 20
                    3     12-15  512M    20 20 20 10
          sides     base: debian:bookworm
                    patched: debian:trixie
          trials    fork-exit: 3 iterations after 2 of warm-up, about 0 ns
          pairing   interleave: one guest after the other
          placement 16 vCPUs on CPUs 1-8,12-19, the rest of QEMU on CPUs 0,24
                    node 0, package 0, 65536 MiB: memory of guest nodes 0, 1
                      core  0    1    2    3    4    5    6    7    8    9    10   11
                      runs  q/q  0/-  1/-  2/-  3/-  4/-  5/-  6/-  7/-  ./.  ./.  ./.
                    node 1, package 1, 65536 MiB: memory of guest nodes 2, 3
                      core  12    13    14    15    16    17    18    19    20    21    22    23
                      runs  8/-   9/-   10/-  11/-  12/-  13/-  14/-  15/-  ./.   ./.   ./.   ./.
                    0, 1: a vCPU  *: any vCPU  q: rest of QEMU  -: kept idle  .: free  x: not to be used
        ");
    }

    #[test]
    fn guests_that_are_there_at_once_are_in_one_picture() {
        let host = two_nodes().read();
        let mut plan = plan(&["base", "patched"], 6);
        let experiment = &mut plan.experiments[0];
        experiment.topology = named("1s4c").unwrap();
        experiment.topology_name = "1s4c".to_owned();
        (experiment.pairing, experiment.blocks[5].sentinel) = (Pairing::Duet, Some(0));
        place_guests(&mut plan, &host, false).unwrap();
        let shown = render(&plan, Accel::Kvm, None, &host, &|_, _| vec!["qemu".to_owned()]);
        let part = |from: &str, to: &str| {
            let rest = &shown[shown.find(from).unwrap()..];
            rest[..rest.find(to).unwrap()].to_owned()
        };
        insta::assert_snapshot!(part("  pairing", "  detects") + &part("  order", "  QEMU"), @r"
          pairing   duet: all guests of a block at once, the first in its order as guest a
          placement a: 4 vCPUs on CPUs 1-4, the rest of QEMU on CPUs 0,24
                    b: 4 vCPUs on CPUs 5-8, the rest of QEMU on CPUs 0,24
                    node 0, package 0, 65536 MiB: the guests' memory
                      core  0     1     2     3     4     5     6     7     8     9     10    11
                      runs  q/q   a0/-  a1/-  a2/-  a3/-  b0/-  b1/-  b2/-  b3/-  ./.   ./.   ./.
                    node 1, package 1, 65536 MiB
                      core  12   13   14   15   16   17   18   19   20   21   22   23
                      runs  ./.  ./.  ./.  ./.  ./.  ./.  ./.  ./.  ./.  ./.  ./.  ./.
                    a0: vCPU 0 of guest a  q: rest of QEMU  -: kept idle  .: free  x: not to be used
          order     block 1: base + patched
                    block 2: patched + base
                    block 3: base + patched
                    block 4: patched + base
                    block 5: base + patched
                    block 6: patched + base, base (sentinel) + base (sentinel)
        ");
    }

    #[test]
    fn what_would_be_refused_is_said() {
        let shown = planned("2s4c", &plain(2).read());
        assert!(shown.contains("placement refused without --overcommit: 8 cores"), "{shown}");
    }

    #[test]
    fn words_survive_a_shell() {
        assert_eq!(quote("-smp"), "-smp");
        assert_eq!(quote("a b"), "'a b'");
        assert_eq!(quote("it's"), r"'it'\''s'");
        assert_eq!(quote(""), "''");
    }
}
