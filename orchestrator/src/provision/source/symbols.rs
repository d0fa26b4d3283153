//! What a tree's Kconfig files say of its options: enough to explain why one cannot be had. Pure.

use std::collections::BTreeMap;

/// The options of a tree.
#[derive(Debug, Default)]
pub struct Symbols {
    /// By name without `CONFIG_`; one entry for each place in which it is defined.
    symbols: BTreeMap<String, Vec<Definition>>,
    choices: usize,
}

/// One place in which an option is defined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// `kernel/Kconfig.preempt:12`.
    pub place: String,
    /// Conditions, all of which must hold.
    pub depends: Vec<String>,
    /// The choice that it is one of; members of a choice have the same number.
    choice: Option<usize>,
}

/// What is open around a line: `if`, `menu` or `choice`, with its conditions.
struct Block {
    keyword: &'static str,
    depends: Vec<String>,
    choice: Option<usize>,
}

/// Who the next `depends on` is of.
enum Of {
    Nothing,
    Option(String),
    Block,
}

impl Symbols {
    /// Reads `Kconfig` and what it includes; `read` gives the text of a file by its place in the tree.
    pub fn read(read: &dyn Fn(&str) -> Option<String>) -> Self {
        let mut symbols = Self::default();
        let mut blocks = Vec::new();
        symbols.file("Kconfig", read, &mut blocks, 0);
        symbols
    }

    /// Whether the tree has the option, by its name with or without `CONFIG_`.
    pub fn has(&self, name: &str) -> bool {
        self.symbols.contains_key(bare(name))
    }

    /// The names of all options, without `CONFIG_`.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.symbols.keys().map(String::as_str)
    }

    /// Where the option is defined.
    pub fn definitions(&self, name: &str) -> &[Definition] {
        self.symbols.get(bare(name)).map_or(&[], Vec::as_slice)
    }

    /// Whether two different options exclude each other, since they are of one choice.
    pub fn exclude(&self, a: &str, b: &str) -> bool {
        let choices = |name| self.definitions(name).iter().filter_map(|each| each.choice);
        bare(a) != bare(b) && choices(a).any(|choice| choices(b).any(|other| other == choice))
    }

    fn file(
        &mut self,
        place: &str,
        read: &dyn Fn(&str) -> Option<String>,
        blocks: &mut Vec<Block>,
        depth: usize,
    ) {
        let Some(text) = read(place).filter(|_| depth < 20) else { return };
        let text = text.replace("\\\n", " ");
        let mut of = Of::Nothing;
        let mut lines = text.lines().enumerate().peekable();
        while let Some((number, line)) = lines.next() {
            let (word, rest) = split(line);
            match word {
                "config" | "menuconfig" => {
                    let place = format!("{place}:{}", number + 1);
                    of = self.option(rest, place, blocks);
                }
                "source" => {
                    let file = rest.trim_matches('"').replace("$(SRCARCH)", "x86");
                    self.file(&file, read, blocks, depth + 1);
                    of = Of::Nothing;
                }
                "if" => {
                    blocks.push(Block {
                        keyword: "if",
                        depends: vec![rest.to_owned()],
                        choice: None,
                    });
                    of = Of::Nothing;
                }
                "menu" => {
                    blocks.push(Block { keyword: "menu", depends: Vec::new(), choice: None });
                    of = Of::Block;
                }
                "choice" => {
                    self.choices += 1;
                    let choice = Some(self.choices);
                    blocks.push(Block { keyword: "choice", depends: Vec::new(), choice });
                    of = Of::Block;
                }
                "endif" | "endmenu" | "endchoice" => {
                    let ended = &word[3..];
                    if blocks.last().is_some_and(|block| block.keyword == ended) {
                        blocks.pop();
                    }
                    of = Of::Nothing;
                }
                "comment" => of = Of::Nothing,
                "depends" => self.depends(&of, rest.trim_start_matches("on").trim(), blocks),
                "help" | "---help---" => {
                    let next = lines.peek().map(|(_, line)| *line);
                    let margin = next.filter(|line| !line.trim().is_empty()).map(indent);
                    let margin = margin.unwrap_or_else(|| indent(line) + 1);
                    while lines
                        .next_if(|(_, line)| {
                            line.trim().is_empty() || indent(line) >= margin.max(1)
                        })
                        .is_some()
                    {}
                }
                _ => {}
            }
        }
    }

    fn option(&mut self, name: &str, place: String, blocks: &[Block]) -> Of {
        let depends = blocks.iter().flat_map(|block| block.depends.iter().cloned()).collect();
        let choice = blocks.iter().rev().find_map(|block| block.choice);
        let definition = Definition { place, depends, choice };
        self.symbols.entry(name.to_owned()).or_default().push(definition);
        Of::Option(name.to_owned())
    }

    fn depends(&mut self, of: &Of, condition: &str, blocks: &mut [Block]) {
        let list = match of {
            Of::Nothing => None,
            Of::Block => blocks.last_mut().map(|block| &mut block.depends),
            Of::Option(name) => {
                let last = self.symbols.get_mut(name).and_then(|all| all.last_mut());
                last.map(|definition| &mut definition.depends)
            }
        };
        if let Some(list) = list {
            list.push(condition.to_owned());
        }
    }
}

/// The options that a condition names.
pub fn named(condition: &str) -> impl Iterator<Item = &str> {
    let words = condition.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with(|c: char| c.is_ascii_uppercase() || c.is_ascii_digit()))
}

fn bare(name: &str) -> &str {
    name.strip_prefix("CONFIG_").unwrap_or(name)
}

fn split(line: &str) -> (&str, &str) {
    let line = line.trim();
    let line = line.split_once(" #").map_or(line, |(before, _)| before.trim_end());
    line.split_once(char::is_whitespace).map_or((line, ""), |(word, rest)| (word, rest.trim()))
}

fn indent(line: &str) -> usize {
    let width = |c: char| if c == '\t' { 8 } else { 1 };
    line.chars().take_while(|c| c.is_whitespace()).map(width).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbols() -> Symbols {
        let top = "\
source \"arch/$(SRCARCH)/Kconfig\"
if NET
config INET
\tbool \"x\"
\tdepends on A && \\
\t\t!B
\thelp
\t  config TRAP
\t  depends on nothing.

\t  More.
config UNIX
\tbool
endif
";
        let x86 = "\
choice
\tprompt \"rate\"
\tdepends on FAST
config HZ_100
\tbool
config HZ_250
\tbool
endchoice
menu \"m\"
\tdepends on X
config INSIDE # why
\tdef_bool y
endmenu
";
        Symbols::read(&|place| match place {
            "Kconfig" => Some(top.to_owned()),
            "arch/x86/Kconfig" => Some(x86.to_owned()),
            _ => None,
        })
    }

    #[test]
    fn conditions_come_from_the_option_and_from_around_it() {
        let symbols = symbols();
        let depends = |name| symbols.definitions(name)[0].depends.clone();
        let inet: Vec<String> =
            depends("CONFIG_INET").iter().map(|each| each.replace(['\t', ' '], "")).collect();
        assert_eq!(inet, ["NET", "A&&!B"]);
        assert_eq!(depends("UNIX"), ["NET"]);
        assert_eq!(depends("INSIDE"), ["X"]);
        assert_eq!(depends("HZ_100"), ["FAST"]);
        assert_eq!(symbols.definitions("HZ_100")[0].place, "arch/x86/Kconfig:4");
        assert!(!symbols.has("TRAP"), "help is no config");
        assert_eq!(named("A && !B_2=y").collect::<Vec<_>>(), ["A", "B_2"]);
    }

    #[test]
    fn members_of_one_choice_exclude_each_other() {
        let symbols = symbols();
        assert!(symbols.exclude("CONFIG_HZ_100", "HZ_250"));
        assert!(!symbols.exclude("HZ_100", "HZ_100"));
        assert!(!symbols.exclude("HZ_100", "INET"));
    }
}
