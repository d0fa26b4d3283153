//! One operation call by call, both sides beside each other.

use crate::analyse::TracedCall;

/// How much of it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceShape {
    /// Deepest level shown; absent: all.
    pub depth: Option<usize>,
    /// Also what is the same on both sides, to the instruction.
    pub all: bool,
}

/// A table: instructions of each call with all that it calls on both sides, their difference, and the
/// function, set in by its depth. `-` and `+` mark calls that only the first or the second side makes;
/// what is the same on both is one line with the number of lines hidden below it.
pub fn trace(calls: &[TracedCall], sides: [&str; 2], shape: TraceShape) -> String {
    let mut table = Table { shape, rows: Vec::new() };
    table.add(calls, 0);
    let total = |side: usize| calls.iter().filter_map(|call| call.instructions[side]).sum::<u64>();
    let sums = [Some(total(0)), Some(total(1))];
    table.rows.push(row(' ', sums, "all"));
    let widths: [usize; 3] = std::array::from_fn(|column| {
        let title = [sides[0], sides[1], "change"][column];
        let widest = table.rows.iter().map(|row| row.cells[column].chars().count()).max();
        widest.unwrap_or_default().max(title.chars().count())
    });
    let mut text = line(' ', [sides[0], sides[1], "change"], widths, "function");
    for Row { sign, cells, name } in &table.rows {
        let [a, b, change] = cells;
        text += &line(*sign, [a, b, change], widths, name);
    }
    text
}

struct Row {
    sign: char,
    cells: [String; 3],
    name: String,
}

struct Table {
    shape: TraceShape,
    rows: Vec<Row>,
}

impl Table {
    fn add(&mut self, calls: &[TracedCall], depth: usize) {
        if self.shape.depth.is_some_and(|deepest| depth >= deepest) {
            return;
        }
        let mut rest = calls;
        while let Some(call) = rest.first() {
            // A loop that calls the same again and again is one line.
            let alike = rest.iter().take_while(|other| self.is_alike(call, other)).count().max(1);
            rest = &rest[alike..];
            let hidden = if call.same && !self.shape.all { inner(call) } else { 0 };
            let mut name = format!("{}{}", "  ".repeat(depth), call.name);
            if alike > 1 {
                name += &format!(" x{alike}");
            }
            if hidden > 0 {
                name += &format!(" … {hidden} more, the same");
            }
            self.rows.push(row(sign(call), call.instructions, &name));
            if !call.same || self.shape.all {
                self.add(&call.calls, depth + 1);
            }
        }
    }

    fn is_alike(&self, a: &TracedCall, b: &TracedCall) -> bool {
        !self.shape.all && a.same && a == b
    }
}

fn inner(call: &TracedCall) -> usize {
    call.calls.iter().map(|call| 1 + inner(call)).sum()
}

fn sign(call: &TracedCall) -> char {
    match call.instructions {
        [Some(_), None] => '-',
        [None, Some(_)] => '+',
        _ => ' ',
    }
}

fn row(sign: char, instructions: [Option<u64>; 2], name: &str) -> Row {
    let [a, b] = instructions;
    let shown = |number: Option<u64>| number.map_or_else(String::new, |number| number.to_string());
    let change = match (a.unwrap_or_default(), b.unwrap_or_default()) {
        (a, b) if a == b => "=".to_owned(),
        (a, b) if b > a => format!("+{}", b - a),
        (a, b) => format!("-{}", a - b),
    };
    Row { sign, cells: [shown(a), shown(b), change], name: name.to_owned() }
}

fn line(sign: char, cells: [&str; 3], widths: [usize; 3], name: &str) -> String {
    let [a, b, change] = cells;
    let [wide_a, wide_b, wide_change] = widths;
    format!("{sign} {a:>wide_a$}  {b:>wide_b$}  {change:>wide_change$}  {name}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::{Call, side_by_side};

    fn call(name: &str, instructions: u64, calls: Vec<Call>) -> Call {
        Call { name: name.to_owned(), instructions, calls }
    }

    fn shown(shape: TraceShape) -> String {
        let page = || call("clear_page", 20, vec![call("leaf", 1, vec![])]);
        let base = [
            call("sys_fork", 100, vec![page(), page(), page(), call("old", 30, vec![])]),
            call("[user]", 7, vec![]),
        ];
        let other = [
            call("sys_fork", 90, vec![page(), page(), page(), call("new", 20, vec![])]),
            call("[user]", 7, vec![]),
        ];
        trace(&side_by_side(&base, &other), ["base", "patched"], shape)
    }

    #[test]
    fn what_is_the_same_is_folded_and_what_is_not_is_shown() {
        let wanted = "  base  patched  change  function
   100       90     -10  sys_fork
    20       20       =    clear_page x3 … 1 more, the same
-   30              -30    old
+            20     +20    new
     7        7       =  [user]
   107       97     -10  all
";
        assert_eq!(shown(TraceShape { depth: None, all: false }), wanted);
    }

    #[test]
    fn everything_is_shown_on_demand_and_nothing_deeper_than_wanted() {
        assert_eq!(shown(TraceShape { depth: None, all: true }).lines().count(), 2 + 1 + 6 + 2 + 1);
        assert_eq!(shown(TraceShape { depth: Some(1), all: true }).lines().count(), 4);
    }
}
