//! Metrics from a trace, comparison, rendering.

pub mod metrics;
