//! The engine: events in virtual time.
