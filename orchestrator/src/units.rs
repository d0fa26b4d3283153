//! Sizes and durations: read as people write them, printed as people read them.
