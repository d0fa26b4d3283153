//! What a config shall be, put together from its parts, and whether it came out so. Pure.

use std::collections::BTreeMap;

use super::symbols::{Symbols, named};
use crate::fault::{Failure, FailureClass};
use crate::text;

/// One option as it shall be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// With `CONFIG_`.
    pub name: String,
    /// `y`, `m`, `n`, a number, a string in its quotes.
    pub value: String,
    /// Whether the build goes on without it.
    pub optional: bool,
}

/// The settings in the text of a config or a fragment. An option that may be missing has
/// `# optional` behind it.
pub fn settings(text: &str) -> Vec<Wanted> {
    text.lines().filter_map(setting).collect()
}

fn setting(line: &str) -> Option<Wanted> {
    let line = line.trim();
    if let Some(name) = line.strip_prefix("# ").and_then(|rest| rest.strip_suffix(" is not set")) {
        let (name, value) = (name.to_owned(), "n".to_owned());
        return name.starts_with("CONFIG_").then_some(Wanted { name, value, optional: false });
    }
    let (setting, optional) = match line.strip_suffix("# optional") {
        Some(setting) => (setting.trim_end(), true),
        None => (line, false),
    };
    let (name, value) = setting.split_once('=')?;
    let (name, value) = (name.trim().to_owned(), value.trim().to_owned());
    name.starts_with("CONFIG_").then_some(Wanted { name, value, optional })
}

/// A config that is put together, later settings over earlier ones.
#[derive(Debug, Default)]
pub struct Draft {
    /// In the order in which they were last set: where two of a choice are set, the last one counts.
    settings: Vec<(String, String)>,
    wanted: Vec<Wanted>,
}

impl Draft {
    /// Sets an option that nobody insists on.
    pub fn set(&mut self, name: &str, value: &str, symbols: &Symbols) {
        let loses = |other: &str, its: &str| {
            other == name || (value == "y" && its == "y" && symbols.exclude(name, other))
        };
        self.settings.retain(|(other, its)| !loses(other, its));
        self.wanted.retain(|other| !loses(&other.name, &other.value));
        self.settings.push((name.to_owned(), value.to_owned()));
    }

    /// Sets an option that must come out so.
    pub fn want(&mut self, wanted: Wanted, symbols: &Symbols) {
        self.set(&wanted.name, &wanted.value, symbols);
        self.wanted.push(wanted);
    }

    /// Sets an option that a guest cannot do without, and still complains in the name of whoever wants
    /// it otherwise.
    pub fn insist(&mut self, wanted: Wanted) {
        self.settings.retain(|(name, _)| *name != wanted.name);
        self.settings.push((wanted.name.clone(), wanted.value.clone()));
        self.wanted.push(wanted);
    }

    /// The value of an option so far.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.settings.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// The text of the config.
    pub fn text(&self) -> String {
        let line = |(name, value): &(String, String)| match value.as_str() {
            "n" => format!("# {name} is not set\n"),
            value => format!("{name}={value}\n"),
        };
        self.settings.iter().map(line).collect()
    }

    /// Compares what is wanted with the `.config` that came out. Gives the optional ones that are not
    /// there, as rows.
    ///
    /// # Errors
    /// All options that cannot be had, with what they depend on.
    pub fn check(
        &self,
        config: &str,
        symbols: &Symbols,
        origin: &str,
    ) -> Result<Vec<String>, Failure> {
        let found: BTreeMap<String, String> =
            settings(config).into_iter().map(|each| (each.name, each.value)).collect();
        let found = |name: &str| found.get(name).map_or("n", String::as_str);
        let lost = |wanted: &&Wanted| {
            let found = found(&wanted.name);
            found != wanted.value && !(wanted.value == "m" && found == "y")
        };
        let row = |wanted: &Wanted| {
            let Wanted { name, value, .. } = wanted;
            format!(
                "{name}: wanted {value}, found {}: {}",
                found(name),
                why(name, value, symbols, &found)
            )
        };
        let lost: Vec<&Wanted> = self.wanted.iter().filter(lost).collect();
        let (optional, needed): (Vec<&Wanted>, Vec<&Wanted>) =
            lost.into_iter().partition(|wanted| wanted.optional);
        if needed.is_empty() {
            return Ok(optional.into_iter().map(row).collect());
        }
        let what = text::count(needed.len(), "option");
        let title = format!("{what} of the config cannot be had from {origin}");
        let failure = Failure::new(FailureClass::BuildFailed, title);
        let failure = needed.into_iter().map(row).fold(failure, Failure::detail);
        Err(failure.hint("set what they depend on, too, or mark them as optional"))
    }
}

fn why<'a>(name: &str, value: &str, symbols: &Symbols, found: &dyn Fn(&str) -> &'a str) -> String {
    let definitions = symbols.definitions(name);
    if definitions.is_empty() {
        let bare = name.trim_start_matches("CONFIG_");
        let near = text::nearest(bare, symbols.names());
        let near = near.map(|near| format!("; did you mean CONFIG_{near}?")).unwrap_or_default();
        return format!("this tree has no such option{near}");
    }
    if value == "n" {
        return "another option or a default selects it".to_owned();
    }
    let one = |definition: &super::symbols::Definition| {
        let place = &definition.place;
        if definition.depends.is_empty() {
            return format!("set by others only, see {place}");
        }
        let all = definition.depends.iter().map(|each| bracketed(each));
        let all = all.collect::<Vec<_>>().join(" && ");
        let off: Vec<String> = definition
            .depends
            .iter()
            .flat_map(|each| named(each))
            .filter(|each| found(&format!("CONFIG_{each}")) == "n")
            .map(|each| format!("{each}=n"))
            .collect();
        let here =
            if off.is_empty() { String::new() } else { format!("; here {}", off.join(", ")) };
        format!("depends on {all} ({place}){here}")
    };
    definitions.iter().map(one).collect::<Vec<_>>().join("; or ")
}

fn bracketed(condition: &str) -> String {
    let condition = condition.split_whitespace().collect::<Vec<_>>().join(" ");
    if condition.contains("||") { format!("({condition})") } else { condition }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbols() -> Symbols {
        let text = "\
choice
config HZ_100
config HZ_250
endchoice
config PSI
\tdepends on CGROUPS || X
config CGROUPS
config HIDDEN
";
        Symbols::read(&|place| (place == "Kconfig").then(|| text.to_owned()))
    }

    fn draft(text: &str) -> Draft {
        let mut draft = Draft::default();
        for wanted in settings(text) {
            draft.want(wanted, &symbols());
        }
        draft
    }

    #[test]
    fn later_settings_win_within_a_choice_too() {
        let draft =
            draft("CONFIG_HZ_250=y\nCONFIG_PSI=y\n# comment\nCONFIG_HZ_100=y\nCONFIG_PSI=n\n");
        assert_eq!(draft.text(), "CONFIG_HZ_100=y\n# CONFIG_PSI is not set\n");
        assert_eq!(draft.check("CONFIG_HZ_100=y\n", &symbols(), "t"), Ok(Vec::new()));
    }

    #[test]
    fn what_cannot_be_had_is_told_with_its_conditions_all_at_once() {
        let draft = draft("CONFIG_PSI=y\nCONFIG_PIS=y\nCONFIG_CGROUPS=m\nCONFIG_HIDDEN=y\n");
        let failure = draft.check("CONFIG_CGROUPS=y\n", &symbols(), "the tree").unwrap_err();
        assert_eq!(failure.title, "3 options of the config cannot be had from the tree");
        assert_eq!(
            failure.details,
            [
                "CONFIG_PSI: wanted y, found n: depends on (CGROUPS || X) (Kconfig:5); here X=n",
                "CONFIG_PIS: wanted y, found n: this tree has no such option; did you mean CONFIG_PSI?",
                "CONFIG_HIDDEN: wanted y, found n: set by others only, see Kconfig:8",
            ]
        );
    }

    #[test]
    fn optional_ones_are_told_only() {
        let draft = draft("CONFIG_PSI=y # optional\n# CONFIG_CGROUPS is not set\n");
        let told = draft.check("", &symbols(), "t").unwrap();
        assert_eq!(told.len(), 1);
        assert!(told[0].starts_with("CONFIG_PSI: wanted y, found n"));
    }

    #[test]
    fn a_guest_gets_what_it_needs_and_who_wants_it_otherwise_is_told() {
        let mut draft = draft("CONFIG_PSI=n\n");
        let value = "y".to_owned();
        draft.insist(Wanted { name: "CONFIG_PSI".to_owned(), value, optional: false });
        assert_eq!(draft.text(), "CONFIG_PSI=y\n");
        let failure = draft.check("CONFIG_PSI=y\n", &symbols(), "t").unwrap_err();
        assert_eq!(failure.details.len(), 1);
        assert!(failure.details[0].starts_with("CONFIG_PSI: wanted n, found y"));
    }
}
