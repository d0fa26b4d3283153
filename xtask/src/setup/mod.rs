//! `cargo xtask setup`: installs what is missing, and says what and why before it does.

mod apt;
pub mod archive;
mod needs;
mod sources;

use std::fs;
use std::io;

use anyhow::{Context, Result, anyhow, bail};

use self::needs::{CARGO_TOOLS, CargoTool, NEEDS, Need, TEST_NEEDS};
use crate::shell::{self, Tool};

/// What the host is set up for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To build kduel and to run it.
    Running,
    /// To run its tests as well.
    Testing,
}

/// Installs what is missing. `ask`: a person at the terminal has to agree first.
///
/// # Errors
///
/// Something is missing and may not or cannot be installed from here; the message names the
/// commands that do it, where there are such.
pub fn setup(purpose: Purpose, ask: bool) -> Result<()> {
    let (of_tests, tools): (&[Need], &[CargoTool]) = match purpose {
        Purpose::Testing => (&TEST_NEEDS, &CARGO_TOOLS),
        Purpose::Running => (&[], &[]),
    };
    let packages: Vec<&Need> = NEEDS.iter().chain(of_tests).filter(|need| !need.is_met()).collect();
    let tools: Vec<&CargoTool> = tools.iter().filter(|tool| !tool.is_met()).collect();
    if packages.is_empty() && tools.is_empty() {
        eprintln!("nothing to install: everything that kduel needs is there");
        return Ok(());
    }

    eprintln!("missing:");
    for need in &packages {
        eprintln!("    {:24} {}", need.package, need.why);
    }
    for tool in &tools {
        eprintln!("    {:24} {}", tool.name, tool.why);
    }
    let commands = install_commands(&packages)?;
    let root = rustix::process::geteuid().is_root();
    if !commands.is_empty() && !root {
        bail!("this needs root; run these, then try again:\n{}", as_root(&commands));
    }
    if ask && shell::interactive() && !agreed()? {
        bail!("nothing was installed");
    }
    for command in &commands {
        eprintln!("$ {}", shell::shell_line(command.iter().map(String::as_str)));
        Tool::new(&command[0]).args(&command[1..]).run().context("failed to install packages")?;
    }
    tools.iter().try_for_each(|tool| install_tool(tool))?;
    still_missing(&packages, &tools)
}

fn install_commands(needs: &[&Need]) -> Result<Vec<Vec<String>>> {
    if needs.is_empty() {
        return Ok(Vec::new());
    }
    let release = apt_release().map_err(|reason| {
        anyhow!("{reason}\nhint: install what is listed above by hand, then try again")
    })?;
    let packages: Vec<&str> = needs.iter().map(|need| need.package).collect();
    apt::commands(&release, &packages)
}

fn apt_release() -> Result<apt::Release> {
    if shell::find_program("apt-get").is_none() {
        bail!("there is no apt here to install it with");
    }
    apt::release(&fs::read_to_string("/etc/os-release").unwrap_or_default())
}

fn as_root(commands: &[Vec<String>]) -> String {
    let line = |command: &Vec<String>| {
        let words = ["sudo"].into_iter().chain(command.iter().map(String::as_str));
        format!("    {}", shell::shell_line(words))
    };
    commands.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn agreed() -> Result<bool> {
    eprint!("install them? [Y/n] ");
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).context("failed to read the answer")?;
    Ok(matches!(answer.trim(), "" | "y" | "Y" | "yes"))
}

/// Builds in cargo's own scratch folder, so that nothing of it stays in ours.
fn install_tool(tool: &CargoTool) -> Result<()> {
    eprintln!("$ cargo install --locked {} {}", tool.name, tool.arguments.join(" "));
    Tool::cargo()
        .args(["install", "--locked", tool.name])
        .args(tool.arguments)
        .env_remove("CARGO_TARGET_DIR")
        .run()
        .with_context(|| format!("failed to install {}", tool.name))
}

fn still_missing(packages: &[&Need], tools: &[&CargoTool]) -> Result<()> {
    let packages = packages.iter().filter(|need| !need.is_met()).map(|need| need.package);
    let tools = tools.iter().filter(|tool| !tool.is_met()).map(|tool| tool.name);
    let missing: Vec<&str> = packages.chain(tools).collect();
    if !missing.is_empty() {
        bail!("installed, but still not usable: {}", missing.join(", "));
    }
    Ok(())
}
