//! Tables that benchmarks and monitors print, one file per format: lines in, tables out. Pure.

mod assemble;
mod block;
mod context;
mod fio;
mod hackbench;
mod heading;
mod hyperfine;
mod json;
mod kernbench;
mod ktap;
mod lmbench;
mod mmtests;
mod number;
mod pattern;
mod perf_bench;
mod perf_lines;
mod perf_stat;
mod profile;
mod robot;
mod scan;
mod schbench;
mod skipped;
mod stress_ng;
mod sysbench;
mod table;
mod time;
mod unixbench;
mod vmstat;

pub use assemble::import;
pub use block::{Cell, Claimed, Format, Note, Role, Row, Sense, Value};
pub use context::{Context, Machine};
pub use skipped::Skipped;
pub use table::{Imported, Side, Table};
