//! What the counting plugin costs: the same guests with it and without, in turn. Says whether what
//! they tell is the same, to the digit. Arguments: the folder with agent and plugin, boots of each.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "figures are what it is for")]

use std::path::PathBuf;
use std::process::ExitCode;

use kduel::boot::SealedSpec;
use kduel::clock::Stopwatch;
use kduel::fault::Failure;
use kduel_tests::Sealed;

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let programs = words.next().map(PathBuf::from);
    let boots = words.next().and_then(|word| word.to_str()?.parse().ok());
    let Some((programs, boots)) = programs.zip(boots) else {
        eprintln!("usage: plugin FOLDER BOOTS");
        return ExitCode::from(2);
    };
    match Sealed::new(&programs).and_then(|sealed| measure(&sealed, boots)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Whether nothing that guests told differed.
fn measure(sealed: &Sealed, boots: usize) -> Result<bool, Failure> {
    println!("fork-exit, Debian 6.1, whole boots; median seconds of {boots}, least and most");
    println!("vCPUs   without plugin          with plugin             ratio  what guests tell");
    let mut all_same = true;
    for cpus in [1, 2, 4] {
        let counted = sealed.guest("fork-exit", 5, cpus)?;
        let plain = SealedSpec { plugin: None, ..counted.clone() };
        let (mut with, mut without, mut first, mut same) = (vec![], vec![], None, true);
        for boot in 0..boots {
            // Whoever goes first changes, so that a drift of the host hits both alike.
            let pair = [(&plain, &mut without), (&counted, &mut with)];
            let mut order: Vec<_> = pair.into_iter().collect();
            order.rotate_left(boot % 2);
            for (spec, seconds) in order {
                let stopwatch = Stopwatch::start();
                let (lines, _) = sealed.told(spec, &mut || {})?;
                seconds.push(stopwatch.elapsed().as_secs_f64());
                same &= *first.get_or_insert_with(|| lines.clone()) == lines;
            }
        }
        let (without, with) = (Spread::of(without), Spread::of(with));
        let ratio = with.median / without.median;
        let word = if same { "identical" } else { "DIFFERS" };
        println!("{cpus:5}   {without}   {with}   {ratio:5.2}  {word}");
        all_same &= same;
    }
    Ok(all_same)
}

struct Spread {
    least: f64,
    median: f64,
    most: f64,
}

impl Spread {
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let at = |place: usize| values.get(place).copied().unwrap_or(f64::NAN);
        let last = values.len().saturating_sub(1);
        Self {
            least: at(0),
            median: f64::midpoint(at(last / 2), at(values.len() / 2)),
            most: at(last),
        }
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:6.2} ({:5.2} to {:5.2})", self.median, self.least, self.most)
    }
}
