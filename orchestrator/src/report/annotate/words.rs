//! What text and page say alike.

use crate::analyse::annotate::{AnnotatedSide, Annotation, Instruction, Listing, Scope};
use crate::report::number;
use crate::text::count;

/// `fork-exit on Westmere-v1, the work of its own tasks, per fork+exit`.
pub(super) fn what(annotation: &Annotation) -> String {
    let Annotation { workload, operation, cpu, scope, .. } = annotation;
    let whose = match scope {
        Scope::Own => "the work of its own tasks",
        Scope::All => "everything in its windows",
    };
    format!("{workload} on {cpu}, {whose}, per {operation}")
}

/// `1745 operations in 5 windows`.
pub(super) fn basis(listing: &Listing) -> String {
    let operations = usize::try_from(listing.operations).unwrap_or(usize::MAX);
    format!("{} in {}", count(operations, "operation"), count(listing.windows, "window"))
}

/// A number of all windows per operation: whole if it is, else as many digits as can be read.
pub(super) fn per_operation(listing: &Listing, number: u64) -> String {
    ratio(number, listing.operations)
}

/// Instructions per call; absent if its beginning was not executed.
pub(super) fn per_call(listing: &Listing) -> Option<String> {
    (listing.calls > 0).then(|| ratio(listing.instructions, listing.calls))
}

#[expect(clippy::cast_precision_loss, reason = "windows have far fewer than 2^53 instructions")]
fn ratio(number: u64, of: u64) -> String {
    let value = number as f64 / of.max(1) as f64;
    if number.is_multiple_of(of.max(1)) {
        return format!("{value:.0}");
    }
    let decimals = match value {
        100.0.. => 1,
        10.0.. => 2,
        1.0.. => 3,
        0.001.. => 4,
        _ => 6,
    };
    format!("{value:.decimals$}")
}

/// An instruction, with the place a branch within the function goes to as [`place`] writes it.
pub(super) fn code(line: &Instruction, listing: &Listing) -> String {
    match line.target {
        Some(target) => format!("{} {}", line.text, place(listing, target)),
        None => line.text.clone(),
    }
}

/// `+1a4`: how far into the function.
pub(super) fn place(listing: &Listing, address: u64) -> String {
    format!("+{:x}", listing.offset(address))
}

/// `512 steps each`, for string instructions that repeat.
#[expect(clippy::cast_precision_loss, reason = "windows have far fewer than 2^53 instructions")]
pub(super) fn steps(line: &Instruction) -> Option<String> {
    let repeats = line.steps > 0 && line.steps != line.executions;
    let each = line.steps as f64 / line.executions.max(1) as f64;
    repeats.then(|| format!("{} steps each", number::quantity(each, "1")))
}

/// `1264.0 more (+96.0 %)`, where both sides executed the function.
pub(super) fn change(base: &AnnotatedSide, value: &AnnotatedSide) -> Option<String> {
    let executed = |side: &AnnotatedSide| {
        let listing = side.listing.as_ref().filter(|listing| listing.instructions > 0)?;
        Some((listing.per_operation(listing.instructions), listing.per_operation(listing.calls)))
    };
    let ((a, a_calls), (b, b_calls)) = (executed(base)?, executed(value)?);
    let more = if a == b { "no change".to_owned() } else { signed(b - a, b / a - 1.0) };
    let mut change = format!("instructions {more}");
    if a_calls > 0.0 && b_calls > 0.0 {
        let (a_each, b_each) = (a / a_calls, b / b_calls);
        let calls = if a_calls == b_calls {
            "as many calls".to_owned()
        } else {
            format!("calls {}", signed(b_calls - a_calls, b_calls / a_calls - 1.0))
        };
        let each = if a_each == b_each {
            "as much per call".to_owned()
        } else {
            format!("per call {}", signed(b_each - a_each, b_each / a_each - 1.0))
        };
        change += &format!(": {calls}, {each}");
    }
    Some(change)
}

/// `+1264 (+96.0 %)`.
fn signed(difference: f64, change: f64) -> String {
    let sign = if difference > 0.0 { "+" } else { "" };
    format!("{sign}{} ({})", number::quantity(difference, "1"), number::signed_percent(change))
}

/// `212 bytes not executed`, of one side or both.
pub(super) fn gap(bytes: &[Option<u64>], names: &[&str]) -> String {
    let size = |bytes: u64| count(usize::try_from(bytes).unwrap_or(usize::MAX), "byte");
    let present: Vec<(u64, &str)> =
        bytes.iter().zip(names).filter_map(|(b, name)| Some(((*b)?, *name))).collect();
    match &present[..] {
        [(bytes, _)] if names.len() < 2 => format!("{} not executed", size(*bytes)),
        [(a, _), (b, _)] if a == b => format!("{} not executed", size(*a)),
        each => {
            let each: Vec<String> =
                each.iter().map(|(bytes, name)| format!("{} of {name}", size(*bytes))).collect();
            format!("{} not executed", each.join(", "))
        }
    }
}
