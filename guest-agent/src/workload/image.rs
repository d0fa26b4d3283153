//! The guest's image, for the workloads that run in it.

use std::path::Path;

use kduel_protocol::IMAGE_ROOT;

/// Where its root is; nothing if the guest has none.
pub fn root() -> Option<&'static Path> {
    Some(Path::new(IMAGE_ROOT)).filter(|root| root.is_dir())
}
