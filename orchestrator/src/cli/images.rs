//! `kduel images`: what is in the cache, building, checking, removing.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::kernels::table;
use super::plan_images;
use super::{CliError, report, watch};
use crate::config::{DEFAULT_DOCUMENT, Environment};
use crate::exit_code;
use crate::fault::{Failure, FailureClass};
use crate::provision::image::{BUILT_IN, Images, ImagesLock, Recipe, Record};
use crate::text;

/// Shown below the help.
pub const EXAMPLES: &str = "\
Examples:
  kduel images build kernbench       gcc, make and a kernel tree, for the workload kernbench
  kduel images build ./mine.yaml     a recipe of your own
  kduel images prune --keep kernbench

A recipe: extends (another recipe), suite, packages, files {/path/in/image: file}, run (shell scripts).
Built in are debian and kernbench; images/NAME.yaml in the current folder goes before them.";

/// Arguments of `kduel images`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ImagesArgs {
    #[command(subcommand)]
    command: ImagesCommand,
}

#[derive(Debug, Subcommand)]
enum ImagesCommand {
    /// What is in the cache, and what could be built
    List,
    /// Build images that are not in the cache, and pin them in images.lock beside ./kernels.yaml
    Build {
        /// Names or recipes
        #[arg(required = true, value_name = "NAME|FILE.yaml")]
        names: Vec<String>,
        /// Build anew what is there already, and pin what comes out
        #[arg(long)]
        update: bool,
    },
    /// Read every image in the cache and compare it with its digest
    Verify,
    /// Remove images from the cache
    Prune {
        /// Not the images of this name
        #[arg(long, value_name = "NAME")]
        keep: Vec<String>,
    },
}

/// Runs the command.
///
/// # Errors
///
/// An image cannot be built, or the cache not be read.
pub fn run(args: &ImagesArgs, environment: &Environment) -> Result<u8, CliError> {
    let watcher = watch::Watcher::new(false, Default::default());
    let images = plan_images::images(environment, &watcher);
    let done = match &args.command {
        ImagesCommand::List => list(&images),
        ImagesCommand::Build { names, update } => build(names, *update, &images, environment),
        ImagesCommand::Verify => verify(&images),
        ImagesCommand::Prune { keep } => prune(keep, &images),
    };
    watcher.finish();
    report::emit(&done?)?;
    Ok(exit_code::DONE)
}

fn list(images: &Images) -> Result<String, Failure> {
    let mut rows = vec![["NAME", "SUITE", "SIZE", "PACKAGES", "SHA-256"].map(str::to_owned)];
    let all = images.all()?;
    rows.extend(all.iter().map(row));
    for (name, _) in BUILT_IN {
        if !all.iter().any(|record| record.name == name) {
            rows.push([name, "", "not built", "", ""].map(str::to_owned));
        }
    }
    Ok(table(&rows))
}

fn row(record: &Record) -> [String; 5] {
    [
        text::escape(&record.name),
        record.suite.clone(),
        format!("{} MiB", record.bytes >> 20),
        record.packages.len().to_string(),
        record.sha256.chars().take(12).collect(),
    ]
}

fn build(
    names: &[String],
    update: bool,
    images: &Images,
    environment: &Environment,
) -> Result<String, Failure> {
    let folder = environment.current_dir.as_path();
    let found: Vec<(&String, Result<Recipe, String>)> =
        names.iter().map(|name| (name, Recipe::find(name, folder))).collect();
    let wrong = found.iter().filter_map(|(_, recipe)| recipe.as_ref().err());
    let wrong: Vec<&str> = wrong.map(String::as_str).collect();
    if !wrong.is_empty() {
        let failure = Failure::new(FailureClass::ImageUnusable, wrong.join("\n"));
        return Err(failure.hint("built in are debian and kernbench; a file ends in .yaml"));
    }
    let mut lock = pins(folder)?;
    let mut said = String::new();
    for (name, recipe) in found {
        let Ok(recipe) = recipe else { continue };
        let file = images.get(name, &recipe, lock.as_mut(), update)?;
        let digest: String = file.sha256.chars().take(12).collect();
        said += &format!("{}  {digest}  {} MiB\n", text::escape(name), file.bytes >> 20);
    }
    lock.map_or(Ok(()), |mut lock| lock.save())?;
    Ok(said)
}

/// Pinned are only the images of a document.
fn pins(folder: &Path) -> Result<Option<ImagesLock>, Failure> {
    let document: PathBuf = folder.join(DEFAULT_DOCUMENT);
    let there = document.is_file();
    there.then(|| ImagesLock::load(&document.with_file_name("images.lock"))).transpose()
}

fn verify(images: &Images) -> Result<String, Failure> {
    let mut said = String::new();
    let mut lost = Vec::new();
    for record in images.all()? {
        let good = images.file(&record.sha256)?.is_some_and(|file| file.bytes == record.bytes);
        let digest: String = record.sha256.chars().take(12).collect();
        let name = text::escape(&record.name);
        match good {
            true => said += &format!("{name}  {digest}  as it was built\n"),
            false => lost.push(format!("{name}  {digest}")),
        }
    }
    if lost.is_empty() {
        return Ok(if said.is_empty() { "no images in the cache\n".to_owned() } else { said });
    }
    let title = "images are gone, or were changed and deleted";
    let failure = Failure::new(FailureClass::ImageUnusable, title);
    let failure = lost.into_iter().fold(failure, Failure::detail);
    Err(failure.hint("build them again: kduel images build NAME"))
}

fn prune(keep: &[String], images: &Images) -> Result<String, Failure> {
    let mut said = String::new();
    for record in images.all()?.iter().filter(|record| !keep.contains(&record.name)) {
        let bytes = images.remove(record)?;
        said += &format!("removed {}: {} MiB\n", text::escape(&record.name), bytes >> 20);
    }
    Ok(if said.is_empty() { "nothing to remove\n".to_owned() } else { said })
}
