//! Metrics from a trace, comparison, rendering.
