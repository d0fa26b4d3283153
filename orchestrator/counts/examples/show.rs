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
    println!("functions not found: {:?}", counts.missing);
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

/// The ten functions that executed most in the work of own tasks, with the calls of each.
fn show_functions(window: &WindowRecord, counts: &Counts, symbols: &Symbols) {
    let names: BTreeMap<u64, &str> = symbols.iter().map(|s| (s.address, s.name.as_str())).collect();
    let mut functions = BTreeMap::<&str, (u64, u64)>::new();
    for part in window.contexts.iter().filter(|c| c.context.is_own_work()) {
        for count in &part.blocks {
            let block = &counts.blocks[count.block];
            let Some((start, name)) = names.range(..=block.address).next_back() else { continue };
            let sums = functions.entry(name).or_default();
            sums.0 += count.totals(&block.decode())[Class::Instructions];
            sums.1 += if *start == block.address { count.executions } else { 0 };
        }
    }
    let mut functions: Vec<_> = functions.into_iter().collect();
    functions.sort_unstable_by_key(|(name, sums)| (std::cmp::Reverse(sums.0), *name));
    for (name, (instructions, calls)) in functions.iter().take(10) {
        println!("  {instructions:12} instructions, {calls:9} calls: {name}");
    }
}
