//! kduel boots two Linux kernels side by side in QEMU guests, runs the same benchmarks in both and
//! says which does better, by how much, and how sure that is.
//!
//! The folders are the pipeline, each with one type handed over at its arrow:
//! [`plan`] → [`provision`] → [`boot`] → [`run`] → [`collect`] → [`analyse`] → [`report`].

pub mod analyse;
pub mod boot;
pub mod cli;
pub mod clock;
pub mod collect;
pub mod config;
pub mod event;
pub mod exit_code;
pub mod fault;
pub mod host;
pub mod id;
pub mod plan;
pub mod provision;
pub mod report;
pub mod run;
pub mod text;
pub mod units;
