//! What went wrong in a build, by its output. Pure.

use std::path::Path;

use crate::fault::{Failure, FailureClass};

/// Lines of context behind the first error.
const CONTEXT: usize = 4;

/// Beginnings and ends of what tells an error, and not its consequences.
const FIRST: [&str; 6] = [
    ": error: ",
    ": fatal error: ",
    "undefined reference to ",
    "undefined symbol: ",
    ": Assembler messages:",
    "multiple definition of ",
];

/// What a build that failed is reported as. `name` is what the user calls the kernel, `log` where all of
/// the output is.
pub fn of_output(name: &str, output: &[String], log: &Path) -> Failure {
    let hint = format!("all of its output is in {}", log.display());
    let has = |words: &str| output.iter().any(|line| line.contains(words));
    if has("No space left on device") || has("Disk quota exceeded") {
        return Failure::new(FailureClass::HostIo, format!("no space is left to build {name}"))
            .hint("make room: a kernel tree takes 1.5 GB, and its objects as much again; `kduel kernels drop` deletes objects that are kept");
    }
    if has("Killed signal terminated program") {
        let title = format!("a compiler was killed while {name} was built");
        return Failure::new(FailureClass::HostIo, title)
            .hint("the host may have run out of memory: see dmesg, and try again");
    }
    let is_error = |line: &String| FIRST.iter().any(|words| line.contains(words));
    let consequence = |line: &String| line.contains("*** ");
    let at = output.iter().position(is_error).or_else(|| output.iter().position(consequence));
    match at {
        Some(at) => {
            let title = format!("{name}: {}", output[at].trim());
            let context = output[at + 1..].iter().take(CONTEXT);
            let context = context.take_while(|line| !line.starts_with("make"));
            context
                .fold(Failure::new(FailureClass::BuildFailed, title), |f, line| f.detail(line))
                .hint(hint)
        }
        None => {
            let last = output.iter().rev().find(|line| !line.trim().is_empty());
            let last = last.map_or("make failed without a word", |line| line.trim());
            Failure::new(FailureClass::BuildFailed, format!("{name}: {last}")).hint(hint)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(output: &str) -> Failure {
        let lines: Vec<String> = output.lines().map(str::to_owned).collect();
        of_output("patched", &lines, Path::new("/c/build.log"))
    }

    #[test]
    fn the_first_error_is_told_with_its_place() {
        let failure = of("  CC      kernel/fork.o\n\
            kernel/fork.c: In function 'f':\n\
            kernel/fork.c:7:2: error: 'x' undeclared\n    7 |  x;\n      |  ^\n\
            make[1]: *** [scripts/Makefile.build:250: kernel/fork.o] Error 1\n");
        assert_eq!(failure.class, FailureClass::BuildFailed);
        assert_eq!(failure.title, "patched: kernel/fork.c:7:2: error: 'x' undeclared");
        assert_eq!(failure.details, ["    7 |  x;", "      |  ^"]);
        assert!(failure.hint.unwrap().contains("/c/build.log"));
    }

    #[test]
    fn a_link_error_and_a_missing_rule_are_found() {
        assert!(
            of("ld: kernel/fork.o: undefined reference to `f'\nmake: *** x").title.contains("`f'")
        );
        let failure = of("make: *** No rule to make target 'a.o', needed by 'b'.  Stop.\n");
        assert!(failure.title.contains("No rule to make target"));
        assert_eq!(of("oops\n\n").title, "patched: oops");
    }

    #[test]
    fn what_is_the_hosts_fault_is_no_fault_of_the_kernel() {
        let full = of("x.c:1:1: fatal error: error writing to /tmp/x.s: No space left on device");
        assert_eq!(full.class, FailureClass::HostIo);
        let killed = of("gcc: fatal error: Killed signal terminated program cc1");
        assert_eq!(killed.class, FailureClass::HostIo);
    }
}
