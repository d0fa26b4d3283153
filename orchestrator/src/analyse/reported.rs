//! What follows from the tables of a report: its changes, computed anew from its own figures. Pure.

use kduel_protocol::Better;
use serde::Serialize;

use crate::collect::parse::{Cell, Claimed, Row, Sense};

/// A candidate's figure against the base's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Reported {
    /// candidate / base - 1; absent where the base is not above zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<f64>,
    /// candidate - base.
    pub difference: f64,
    /// Whether it is for the better; absent if neither or not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub improved: Option<bool>,
    /// Whether the report's own percentage says the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agreement: Option<Agreement>,
}

/// How a report's own percentage goes with its figures, rounding considered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Agreement {
    /// It is what the figures give.
    Agrees,
    /// It is with the other sign.
    OtherSign,
    /// It is not what the figures give.
    Disagrees,
}

/// Every candidate of a row against its base, which is its first cell. None where a figure is absent.
pub fn changes(row: &Row) -> Vec<Option<Reported>> {
    let Some((base, candidates)) = row.cells.split_first() else { return Vec::new() };
    candidates.iter().map(|cell| change(row.better, base, cell)).collect()
}

fn change(better: Option<Better>, base: &Cell, cell: &Cell) -> Option<Reported> {
    let (a, b) = (base.mean()?, cell.mean()?);
    let difference = b - a;
    let improved = better.filter(|_| difference != 0.0).map(|better| match better {
        Better::Lower => difference < 0.0,
        Better::Higher => difference > 0.0,
    });
    let agreement = cell.claimed.and_then(|claimed| agreement(claimed, better, base, cell));
    let change = (a > 0.0).then(|| b / a - 1.0).filter(|change| change.is_finite());
    Some(Reported { change, difference, improved, agreement })
}

/// None if the figures give no such number.
fn agreement(
    claimed: Claimed,
    better: Option<Better>,
    base: &Cell,
    cell: &Cell,
) -> Option<Agreement> {
    let (a, b) = (base.mean()?, cell.mean()?);
    let (near_a, near_b) = (base.rounding(), cell.rounding());
    let (low, high) = if claimed.sense == Sense::Points {
        (b - a - near_a - near_b, b - a + near_a + near_b)
    } else {
        let (least, most) = (a - near_a, a + near_a);
        if least <= 0.0 {
            return None;
        }
        let ends = [b - near_b, b + near_b].map(|b| [b / least, b / most]);
        let ends = ends.as_flattened();
        let low = ends.iter().copied().fold(f64::INFINITY, f64::min);
        let high = ends.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (100.0 * (low - 1.0), 100.0 * (high - 1.0))
    };
    // Programs round halves either way.
    let near = claimed.value.step * 0.5 + 1e-9 * (1.0 + low.abs().max(high.abs()));
    let fits = |said: f64| (low - near..=high + near).contains(&said);
    let said = claimed.value.number;
    let (straight, turned) = (fits(said), fits(-said));
    Some(match (claimed.sense, better, straight, turned) {
        (Sense::BetterIsPlus, Some(Better::Lower), _, true)
        | (Sense::BetterIsPlus, None, _, true)
        | (_, _, true, true) => Agreement::Agrees,
        (Sense::BetterIsPlus, Some(Better::Lower), true, false) => Agreement::OtherSign,
        (_, _, true, false) => Agreement::Agrees,
        (_, _, false, true) => Agreement::OtherSign,
        (_, _, false, false) => Agreement::Disagrees,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::parse::{Role, Value};

    fn row(better: Better, figures: [f64; 2], said: Option<(f64, Sense)>) -> Row {
        let value = |number| Value { number, step: 0.01, line: 1 };
        let mut cells =
            figures.map(|figure| Cell { values: vec![value(figure)], ..Cell::default() });
        cells[1].claimed = said.map(|(number, sense)| Claimed { value: value(number), sense });
        Row {
            metric: "m".into(),
            unit: String::new(),
            better: Some(better),
            role: Role::Result,
            cells: cells.into(),
        }
    }

    fn agreement_of(
        better: Better,
        figures: [f64; 2],
        said: f64,
        sense: Sense,
    ) -> Option<Agreement> {
        changes(&row(better, figures, Some((said, sense))))[0].unwrap().agreement
    }

    #[test]
    fn signs_mean_what_the_table_means_by_them() {
        let (lower, higher) = (Better::Lower, Better::Higher);
        assert_eq!(
            agreement_of(lower, [100.0, 95.0], 5.0, Sense::BetterIsPlus),
            Some(Agreement::Agrees)
        );
        assert_eq!(
            agreement_of(lower, [100.0, 95.0], -5.0, Sense::BetterIsPlus),
            Some(Agreement::OtherSign)
        );
        assert_eq!(
            agreement_of(higher, [100.0, 95.0], -5.0, Sense::BetterIsPlus),
            Some(Agreement::Agrees)
        );
        assert_eq!(agreement_of(lower, [100.0, 95.0], -5.0, Sense::Raw), Some(Agreement::Agrees));
        assert_eq!(agreement_of(lower, [100.0, 95.0], 5.0, Sense::Raw), Some(Agreement::OtherSign));
        assert_eq!(
            agreement_of(lower, [100.0, 95.0], -5.2, Sense::Raw),
            Some(Agreement::Disagrees)
        );
        assert_eq!(
            agreement_of(higher, [8.54, 7.54], -1.0, Sense::Points),
            Some(Agreement::Agrees)
        );
    }

    #[test]
    fn what_rounding_explains_is_no_disagreement() {
        // 0.03 may be anything from 0.025 to 0.035.
        assert_eq!(
            agreement_of(Better::Lower, [0.03, 0.06], 135.0, Sense::Raw),
            Some(Agreement::Agrees)
        );
        assert_eq!(
            agreement_of(Better::Lower, [3.0, 6.0], 135.0, Sense::Raw),
            Some(Agreement::Disagrees)
        );
    }

    #[test]
    fn no_change_follows_from_a_base_of_zero_or_an_absent_figure() {
        let found = changes(&row(Better::Lower, [0.0, 2.0], Some((100.0, Sense::Raw))))[0].unwrap();
        assert_eq!((found.change, found.difference, found.agreement), (None, 2.0, None));
        assert_eq!(found.improved, Some(false));
        let mut absent = row(Better::Lower, [1.0, 2.0], None);
        absent.cells[1].values.clear();
        assert_eq!(changes(&absent), [None]);
    }
}
