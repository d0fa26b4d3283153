//! getrusage(2) of the workload's process and the children it has waited for.

use super::Counters;
use crate::sys;

/// So far.
pub fn read() -> Result<Counters, String> {
    let usage = sys::own_usage().map_err(|error| format!("getrusage: {error}"))?;
    Ok(usage.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_faulted() {
        let found = read().unwrap();
        assert!(found["minor-faults"] > 0.0, "{found:?}");
        assert!(found["user-ms"] + found["system-ms"] >= 0.0);
    }
}
