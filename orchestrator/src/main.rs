//! The command `kduel`.

fn main() {}
