//! The event vocabulary, and its formats in and out.
