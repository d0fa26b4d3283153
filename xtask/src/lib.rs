//! What the tasks and the integration tests share.

pub mod leftovers;
