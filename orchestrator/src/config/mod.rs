//! What the user wrote: the document, SPECs, flags. Checked whole, every complaint at once.
//!
//! Text becomes a tree that knows where everything stands (`document.rs`); the flags of an ad-hoc
//! comparison become the same tree (`adhoc.rs`). The readers of its parts collect complaints in a
//! `Check` and give checked types.

mod adhoc;
mod adhoc_kernels;
mod case;
mod check;
mod claims;
mod command;
mod config_parts;
mod default_sides;
mod diagnostic;
mod document;
pub mod environment;
mod exact;
mod expect;
mod experiment;
mod files;
mod image;
mod kernel_spec;
mod kernels;
mod load;
mod matrix;
mod monitors;
mod node;
mod numa;
mod patches;
mod resolve;
mod sides;
mod source_spec;
mod source_words;
mod sources;
mod spec;
mod topologies;
mod topology_rules;
mod workloads;

pub use case::{Case, load_case};
pub use diagnostic::{Diagnostic, Diagnostics};
pub use environment::{Environment, EnvironmentError};
pub use exact::Terms as ExactTermsGiven;
pub use experiment::{Experiment, Terms};
pub use kernel_spec::{DebianSpec, KernelSpec};
pub use load::{DEFAULT_DOCUMENT, Loaded, load, load_kernels, parse_spec};
pub use source_spec::{Compiler, ConfigPart, Origin, SourceSpec, Toolchain};
pub use spec::SPEC_HELP;
pub use workloads::{WorkloadUse, defaults};
