//! Kernels and images: found, fetched, checked by SHA-256, cached by digest.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A kernel that can be booted: files in the cache, each checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Kernel {
    /// The bzImage.
    pub image: PathBuf,
    /// SHA-256 of the bzImage, lower-case hex.
    pub image_sha256: String,
    /// `uname -r`, read from the image's header.
    pub release: String,
    /// The folder whose `kernel/` holds the modules; absent if everything is built in.
    pub modules: Option<PathBuf>,
    /// The kernel's config where it can be had.
    pub config: Option<PathBuf>,
    /// Package and version, or path: for people.
    pub origin: String,
    /// The base initramfs made for this kernel: agent, busybox, dropbear, modules.
    pub initramfs: PathBuf,
    /// SHA-256 of the base initramfs.
    pub initramfs_sha256: String,
}
