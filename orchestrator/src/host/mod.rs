//! The host: what it has, what really works on it.
