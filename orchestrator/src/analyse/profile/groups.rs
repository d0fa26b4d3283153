//! Groups of functions by patterns that users extend.

use serde::Deserialize;

use super::code::Code;
use super::count::{Profile, Scope, Sums};
use super::names::source_name;

/// What groups there are if nobody says otherwise.
const DEFAULT: &str = include_str!("groups.yaml");

/// Why a file of groups cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum GroupsError {
    /// It is not what it should be.
    #[error(
        "{0}\n  write groups as `groups:` and a list of `name:`, `calls:` and `with:`, patterns in \
         square brackets"
    )]
    Malformed(#[from] serde_yaml::Error),
    /// A group that names nothing.
    #[error("group `{0}` has no pattern\n  list functions under `calls:` or `with:`")]
    Empty(String),
}

/// Groups, in the order in which they take functions.
#[derive(Debug, Clone, Default)]
pub struct Groups(Vec<Group>);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    groups: Vec<Group>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    name: String,
    #[serde(default)]
    calls: Vec<String>,
    #[serde(default)]
    with: Vec<String>,
}

/// A group on both sides: calls of the functions that are counted, instructions of all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupRow {
    /// The group.
    pub name: String,
    /// On the base.
    pub base: Sums,
    /// On the candidate.
    pub value: Sums,
}

impl Groups {
    /// Those that come with kduel.
    ///
    /// # Errors
    ///
    /// None, as a test shows; the type is that of [`Groups::extend`].
    pub fn standard() -> Result<Self, GroupsError> {
        Self::default().extend(DEFAULT)
    }

    /// Puts the groups of a document before these. One of the same name gets the document's patterns,
    /// too.
    ///
    /// # Errors
    ///
    /// [`GroupsError`].
    pub fn extend(self, document: &str) -> Result<Self, GroupsError> {
        let Document { mut groups } = serde_yaml::from_str(document)?;
        if let Some(empty) = groups.iter().find(|g| g.calls.is_empty() && g.with.is_empty()) {
            return Err(GroupsError::Empty(empty.name.clone()));
        }
        for known in self.0 {
            match groups.iter_mut().find(|group| group.name == known.name) {
                Some(group) => {
                    group.calls.extend(known.calls);
                    group.with.extend(known.with);
                }
                None => groups.push(known),
            }
        }
        Ok(Self(groups))
    }

    /// The groups in the work of own tasks; those in which nothing was executed are left out.
    pub(super) fn rows(&self, base: &Profile, value: &Profile) -> Vec<GroupRow> {
        let rows = self.0.iter().map(|group| GroupRow {
            name: group.name.clone(),
            base: Sums::default(),
            value: Sums::default(),
        });
        let mut rows: Vec<GroupRow> = rows.collect();
        for (side, profile) in [base, value].into_iter().enumerate() {
            for ((scope, code), sums) in &profile.rows {
                let Some((place, counted)) = self.find(code).filter(|_| *scope == Scope::Own)
                else {
                    continue;
                };
                let row = &mut rows[place];
                let sum = if side == 0 { &mut row.base } else { &mut row.value };
                sum.instructions += sums.instructions;
                sum.calls += if counted { sums.calls } else { 0 };
            }
        }
        rows.retain(|row| row.base != row.value || row.base != Sums::default());
        rows
    }

    /// The group of a function, and whether its calls are counted there.
    fn find(&self, code: &Code) -> Option<(usize, bool)> {
        let (name, _) = source_name(code.name()?);
        self.0.iter().enumerate().find_map(|(place, group)| {
            let any = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, name));
            match (any(&group.calls), any(&group.with)) {
                (true, _) => Some((place, true)),
                (false, true) => Some((place, false)),
                (false, false) => None,
            }
        })
    }
}

/// Whether `*` in the pattern can stand for something so that it is the text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((begin, mut rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(begin) else { return false };
    while let Some((middle, after)) = rest.split_once('*') {
        let Some(at) = text.find(middle) else { return false };
        text = &text[at + middle.len()..];
        rest = after;
    }
    text.ends_with(rest)
}

#[cfg(test)]
mod tests {
    use super::super::testing::profile;
    use super::*;

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, text, fits) in [
            ("schedule", "schedule", true),
            ("schedule", "schedule_tail", false),
            ("_raw_*lock*", "_raw_spin_lock_irq", true),
            ("*_slowpath", "queued_spin_lock_slowpath", true),
            ("a*b*c", "abc", true),
            ("a*bc", "abcb", false),
            ("a*a", "a", false),
        ] {
            assert_eq!(matches(pattern, text), fits, "{pattern} {text}");
        }
    }

    #[test]
    fn users_extend_the_groups_that_come_along() {
        let mine = "groups: [{name: mine, calls: [kfree]}, {name: frees, with: [my_free*]}]";
        let groups = Groups::standard().unwrap().extend(mine).unwrap();
        let base = profile(1, &[("kfree", 10, 1), ("my_free.isra.0", 5, 1), ("vfree", 4, 2)]);
        let rows = groups.rows(&base, &base);
        let found: Vec<_> = rows.iter().map(|row| (row.name.as_str(), row.base)).collect();
        let sums = |instructions, calls| Sums { instructions, calls };
        assert_eq!(found, [("mine", sums(10, 1)), ("frees", sums(9, 2))]);
    }

    #[test]
    fn what_is_wrong_in_a_file_is_said() {
        let error = |text| Groups::default().extend(text).unwrap_err().to_string();
        assert!(error("groups: [{nam: x}]").contains("unknown field `nam`"));
        assert!(error("groups: [{name: x}]").contains("group `x` has no pattern"));
    }
}
