//! The images that a plan's guests have on a disk.

use std::path::Path;
use std::sync::Arc;

use super::watch::Watcher;
use crate::config::Environment;
use crate::event::RunEvent;
use crate::fault::{Failure, FailureClass};
use crate::plan::{Measure, Plan, PlannedImage};
use crate::provision::image::{Images, ImagesLock};
use crate::provision::{Cache, image_modules};

/// Makes the images of the plan, pinned in `images.lock` beside the document if there is one.
pub(super) fn pin(
    plan: &mut Plan,
    document: Option<&Path>,
    environment: &Environment,
    watcher: &Arc<Watcher>,
) -> Result<(), Failure> {
    let wanted = plan.experiments.iter_mut().filter_map(|experiment| experiment.image.as_mut());
    let wanted: Vec<&mut PlannedImage> = wanted.collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let images = images(environment, watcher);
    let mut lock = match document {
        Some(document) => Some(ImagesLock::load(&document.with_file_name("images.lock"))?),
        None => None,
    };
    for image in wanted {
        let what = format!("checking image {}", image.name);
        watcher.handle(&RunEvent::Provisioning { what });
        image.file = Some(images.get(&image.name, &image.recipe, lock.as_mut(), false)?);
    }
    lock.map_or(Ok(()), |mut lock| lock.save())
}

/// Whether the images that a run began with are still there.
pub(super) fn check(
    plan: &Plan,
    environment: &Environment,
    watcher: &Arc<Watcher>,
) -> Result<(), Failure> {
    for image in plan.experiments.iter().filter_map(|experiment| experiment.image.as_ref()) {
        let Some(file) = &image.file else { continue };
        if images(environment, watcher).file(&file.sha256)?.is_none_or(|now| now != *file) {
            let title = format!("image {} of the run is no longer in the cache", image.name);
            return Err(Failure::new(FailureClass::ImageUnusable, title)
                .hint("start a new run; an image is built anew where packages have not moved on"));
        }
    }
    Ok(())
}

/// The images of the cache.
pub(super) fn images(environment: &Environment, watcher: &Arc<Watcher>) -> Images {
    let watcher = watcher.clone();
    let tell = move |what| watcher.handle(&RunEvent::Provisioning { what });
    Images::new(Cache::new(environment.cache_dir.clone()), Arc::new(tell))
}

/// Modules that guests of the plan need besides those that all need.
pub(super) fn modules_for(plan: &Plan) -> &'static [&'static str] {
    match plan.experiments.iter().any(|experiment| experiment.image.is_some()) {
        true => image_modules(plan.measure == Measure::Instructions),
        false => &[],
    }
}
