//! Which code an instruction belongs to.

use std::sync::Arc;

use kduel_counts::{Symbol, Symbols};

/// What a row of a profile is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    /// A function of the kernel or of a module. Functions of one name are one row.
    Function {
        /// As the kernel's symbols have it.
        name: Arc<str>,
        /// The module that it is in.
        module: Option<Arc<str>>,
    },
    /// Code of a process, by the process's name; empty if it is not known.
    Process(Arc<str>),
    /// Kernel code that no symbol names: of a module that is gone, or made at run time.
    Unnamed,
}

impl Code {
    /// A function of the kernel itself.
    pub fn function(name: &str) -> Self {
        Self::Function { name: name.into(), module: None }
    }

    /// The function's name, if it is one.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Function { name, .. } => Some(name),
            Self::Process(_) | Self::Unnamed => None,
        }
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Function { name, module: None } => f.write_str(name),
            Self::Function { name, module: Some(module) } => write!(f, "{name} [{module}]"),
            Self::Process(name) if name.is_empty() => f.write_str("(user)"),
            Self::Process(name) => write!(f, "(user {name})"),
            Self::Unnamed => f.write_str("(code without a symbol)"),
        }
    }
}

/// No function is longer, in bytes: behind it lies something that the symbols do not know.
const LONGEST: u64 = 64 * 1024;

/// A kernel's functions by address.
#[derive(Debug, Clone, Default)]
pub struct Functions {
    starts: Vec<u64>,
    codes: Vec<Code>,
    /// Every name at the address, where there are several.
    aliases: Vec<Vec<Arc<str>>>,
}

impl Functions {
    /// Of one kernel and its modules. Of several names at one address the plainest is taken.
    pub fn new(symbols: &Symbols) -> Self {
        let mut functions = Self::default();
        let code: Vec<&Symbol> = symbols.iter().filter(|s| is_code(s)).collect();
        for same in code.chunk_by(|a, b| a.address == b.address) {
            let Some(best) = same.iter().min_by_key(|symbol| plainness(symbol)) else { continue };
            functions.starts.push(best.address);
            functions.codes.push(Code::Function {
                name: best.name.as_str().into(),
                module: best.module.as_deref().map(Into::into),
            });
            let others = same.iter().filter(|symbol| symbol.name != best.name);
            functions.aliases.push(others.map(|symbol| symbol.name.as_str().into()).collect());
        }
        functions
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// The function that holds the address, by its place.
    pub fn find(&self, address: u64) -> Option<usize> {
        let place = self.starts.partition_point(|start| *start <= address).checked_sub(1)?;
        (address - self.starts[place] < LONGEST).then_some(place)
    }

    /// Its first address.
    pub fn start(&self, place: usize) -> u64 {
        self.starts[place]
    }

    /// The first address behind it.
    pub fn end(&self, place: usize) -> u64 {
        let limit = self.starts[place].saturating_add(LONGEST);
        self.starts.get(place + 1).map_or(limit, |next| limit.min(*next))
    }

    /// What it is called.
    pub fn code(&self, place: usize) -> &Code {
        &self.codes[place]
    }

    /// What else it is called.
    pub fn aliases(&self, place: usize) -> &[Arc<str>] {
        &self.aliases[place]
    }
}

/// Padding in front of a function is no function, though it has a symbol.
fn is_code(symbol: &Symbol) -> bool {
    let padding = symbol.name.starts_with("__pfx_") || symbol.name.starts_with("__cfi_");
    matches!(symbol.letter, 't' | 'T' | 'w' | 'W') && symbol.address >> 63 == 1 && !padding
}

/// The lower, the better for reading: a system call by its 64-bit name, no mark of where a section
/// begins or ends, then few underscores, short.
fn plainness(symbol: &Symbol) -> (bool, bool, usize, usize, &str) {
    let name = symbol.name.as_str();
    let marks_section = ["text_start", "text_end"].iter().any(|end| name.ends_with(end));
    let underscores = name.chars().take_while(|c| *c == '_').count();
    (!name.starts_with("__x64_sys_"), marks_section, underscores, name.len(), name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
ffffffff81000000 T first
ffffffff81000020 t __pfx_second
ffffffff81000030 t __do_sys_getppid
ffffffff81000030 T __ia32_sys_getppid
ffffffff81000030 T __x64_sys_getppid
ffffffff81000040 D data
ffffffff81000050 T __entry_text_start
ffffffff81000050 T entry
ffffffffc0000000 t odd\u{1b}[2J\t[virtio]
";

    fn functions() -> Functions {
        Functions::new(&Symbols::parse(TEXT).unwrap())
    }

    #[test]
    fn addresses_belong_to_the_function_before_them() {
        let functions = functions();
        let name = |address| functions.find(address).map(|at| functions.code(at).to_string());
        assert_eq!(name(0xffff_ffff_8100_002f).as_deref(), Some("first"));
        assert_eq!(name(0xffff_ffff_8100_0031).as_deref(), Some("__x64_sys_getppid"));
        assert_eq!(name(0xffff_ffff_8100_0051).as_deref(), Some("entry"));
        assert_eq!(name(0xffff_ffff_80ff_ffff), None);
        let aliases = functions.aliases(functions.find(0xffff_ffff_8100_0030).unwrap());
        assert_eq!(aliases.len(), 2);
    }

    /// A module that is gone has no symbols: its code is not the last function before it.
    #[test]
    fn code_far_behind_every_symbol_has_no_name() {
        let functions = functions();
        assert_eq!(functions.find(0xffff_ffff_9000_0000), None);
        assert_eq!(functions.find(0xffff_ffff_c001_0000), None);
        let odd = functions.find(0xffff_ffff_c000_0004).unwrap();
        assert_eq!(functions.code(odd).to_string(), "odd\u{1b}[2J [virtio]");
    }
}
