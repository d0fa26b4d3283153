//! The command `kduel`.

fn main() -> std::process::ExitCode {
    kduel::cli::main().into()
}
