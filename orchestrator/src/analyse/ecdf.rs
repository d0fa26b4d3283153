//! How single operations spread, thinned to what a picture can show.

/// The empirical distribution of one side's operations.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ecdf {
    /// Operations it is made of.
    pub operations: usize,
    /// The unit of the values.
    pub unit: String,
    /// A value and the share of operations that are not above it, 0 to 1; ascending, the largest value
    /// last. Every operation where there are few.
    pub steps: Vec<(f64, f64)>,
    /// A share and the value at it, interpolated.
    pub quantiles: Vec<(f64, f64)>,
}

/// Steps at most; more than a picture has room for.
const STEPS: usize = 200;

/// In thousandths.
const SHARES: [usize; 9] = [0, 50, 250, 500, 750, 950, 990, 999, 1000];

impl Ecdf {
    /// Of `values`, whatever their order; what is no number is left out. None where none is left.
    pub fn of(mut values: Vec<f64>, unit: &str) -> Option<Self> {
        values.retain(|value| value.is_finite());
        values.sort_unstable_by(f64::total_cmp);
        let last = values.len().checked_sub(1)?;
        let share = |place: usize| (place + 1) as f64 / values.len() as f64;
        let mut steps: Vec<(f64, f64)> = Vec::new();
        for step in 0..values.len().min(STEPS) {
            let place = if last < STEPS { step } else { step * last / (STEPS - 1) };
            let (value, share) = (values[place], share(place));
            match steps.last_mut() {
                Some(before) if before.0.to_bits() == value.to_bits() => before.1 = share,
                _ => steps.push((value, share)),
            }
        }
        let quantiles =
            SHARES.map(|share| (share as f64 / 1000.0, quantile(&values, share))).to_vec();
        Some(Self { operations: values.len(), unit: unit.to_owned(), steps, quantiles })
    }
}

/// Between the neighbours of the place that a share in thousandths falls to; `sorted` is not empty.
fn quantile(sorted: &[f64], share: usize) -> f64 {
    let place = share * (sorted.len() - 1);
    let below = place / 1000;
    let above = (below + 1).min(sorted.len() - 1);
    let part = (place % 1000) as f64 / 1000.0;
    sorted[below] * (1.0 - part) + sorted[above] * part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_are_all_there_and_equal_ones_are_one_step() {
        let ecdf = Ecdf::of(vec![3.0, 1.0, f64::NAN, 2.0, 2.0], "ns").unwrap();
        assert_eq!(ecdf.steps, [(1.0, 0.25), (2.0, 0.75), (3.0, 1.0)]);
        assert_eq!(ecdf.operations, 4);
        assert_eq!(Ecdf::of(vec![f64::INFINITY], "ns"), None);
    }

    #[test]
    fn many_values_keep_their_ends_and_quantiles() {
        let ecdf = Ecdf::of((0..100_001).rev().map(f64::from).collect(), "ns").unwrap();
        assert_eq!(ecdf.steps.len(), STEPS);
        assert_eq!(ecdf.steps.first().map(|step| step.0), Some(0.0));
        assert_eq!(ecdf.steps.last(), Some(&(100_000.0, 1.0)));
        assert!(ecdf.steps.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1));
        assert_eq!(ecdf.quantiles[6], (0.99, 99_000.0));
        let values: Vec<f64> = (0..37).map(|v| f64::from(v * v)).collect();
        let known = kduel_stats::quantile(&values, 0.95).unwrap();
        let found = Ecdf::of(values, "ns").unwrap().quantiles[5];
        assert_eq!(found.0, 0.95);
        assert!((found.1 - known).abs() < 1e-9 * known);
    }
}
