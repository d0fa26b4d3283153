//! Comparisons as text and as JSON. Pure.
