//! Numbers only: summaries, histograms, intervals, tests.
//!
//! Two traditions meet here. Scheduler mail prints what mmtests computes, so its formulas and both generations of its
//! significance star are modelled exactly, oddities included ([`Stat`], [`Rule`]). A paired experiment deserves more:
//! runs with the same seed on both sides are compared pair by pair ([`Paired`]), and the answer is a word
//! ([`Verdict`]).
//!
//! Floats are allowed here, but not in the crates below. The same samples give the same bits on every host:
//! sums run in a fixed order, `libm` replaces the C library, and whatever draws at random names its seed.

mod bootstrap;
mod diff;
mod direction;
mod histogram;
mod interval;
mod moments;
mod paired;
mod rank;
mod rng;
mod rule;
mod special;
mod stat;
mod submean;
mod summary;
mod test;
#[cfg(test)]
mod testdata;
mod verdict;

pub use bootstrap::Bootstrap;
pub use diff::{cidiff, pdiff, pndiff, rdiff, sdiff};
pub use direction::Direction;
pub use histogram::Histogram;
pub use interval::{Estimate, Interval, mean_t};
pub use moments::Moments;
pub use paired::{Mean, Paired};
pub use rank::{rank_sum, signed_rank};
pub use rng::Rng;
pub use rule::{Era, Rule, Star, UnknownRule};
pub use special::{normal_quantile, normal_sf, t_quantile, t_sf};
pub use stat::Stat;
pub use submean::submean;
pub use summary::Summary;
pub use test::{paired_t, t_2020, welch};
pub use verdict::{Judge, Verdict};
