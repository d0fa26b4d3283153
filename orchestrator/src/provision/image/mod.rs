//! Images: a Debian of packages that a recipe lists, as one read-only file that guests mount.

mod build;
mod lock;
mod recipe;
mod store;

pub use lock::ImagesLock;
pub use recipe::{BUILT_IN, Recipe};
pub use store::{Images, Record};
