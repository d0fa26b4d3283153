//! The dispatcher: boots in the planned order, trials in each, records as they end.
