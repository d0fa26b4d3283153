//! Shows a file of counts: `show FILE [SYMBOLS]`. Every number as it is, divided by nothing.
#![expect(clippy::print_stdout, reason = "prints what it read")]

use std::collections::BTreeMap;
use std::error::Error;

use kduel_counts::{Class, Counts, Symbols, Totals, WindowRecord, read};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("usage: show FILE [SYMBOLS]")?;
    let symbols = arguments.next().map(std::fs::read_to_string).transpose()?;
    let symbols = symbols.map(|text| Symbols::parse(&text)).transpose()?.unwrap_or_default();
    let counts = read(&std::fs::read(file)?)?;
    println!("{} vCPUs, {} blocks, {:?}", counts.vcpus, counts.blocks.len(), counts.shortfall);
    for window in &counts.windows {
        show_window(window);
        show_functions(window, &counts, &symbols);
    }
    Ok(())
}

fn show_window(window: &WindowRecord) {
    println!("window {}", window.number);
    for part in &window.contexts {
        let whose = if part.context.own { "own" } else { "other" };
        let instructions = part.totals[Class::Instructions];
        println!("  {whose:5} {:?} {} {instructions}", part.context.kind, part.name);
    }
    println!("  own work: {}", line(&window.totals(|c| c.is_own_work())));
    println!("  all: {}", line(&window.totals(|_| true)));
    let unfinished = window.contexts.iter().flat_map(|c| &c.blocks).map(|b| b.unfinished);
    let steps = window.totals(|_| true)[Class::Instructions] + unfinished.sum::<u64>();
    println!("  steps as the emulator takes them: {steps}");
}

fn line(totals: &Totals) -> String {
    let parts: Vec<_> = totals
        .iter()
        .filter(|(_, n)| *n > 0)
        .map(|(class, number)| format!("{}={number}", class.name()))
        .collect();
    parts.join(" ")
}

/// The ten functions with the most calls of their first block, in the work of own tasks.
fn show_functions(window: &WindowRecord, counts: &Counts, symbols: &Symbols) {
    let names: BTreeMap<u64, &str> = symbols.iter().map(|s| (s.address, s.name.as_str())).collect();
    let mut calls = BTreeMap::<&str, u64>::new();
    for part in window.contexts.iter().filter(|c| c.context.is_own_work()) {
        for count in &part.blocks {
            if let Some(name) = names.get(&counts.blocks[count.block].address) {
                *calls.entry(name).or_default() += count.executions;
            }
        }
    }
    let mut calls: Vec<_> = calls.into_iter().map(|(name, calls)| (calls, name)).collect();
    calls.sort_unstable_by(|a, b| b.cmp(a));
    for (calls, name) in calls.iter().take(10) {
        println!("  {calls:9} calls of {name}");
    }
}
