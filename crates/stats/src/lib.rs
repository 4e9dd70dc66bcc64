//! Numbers only: summaries, histograms, intervals, tests.
