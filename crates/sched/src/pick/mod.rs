//! Which task runs next, and whether a woken task may preempt.

pub mod avg_vruntime;
pub mod cfs;
pub mod check_preempt;
#[cfg(test)]
pub(crate) mod drawn;
pub mod eevdf;
pub mod place_entity;
pub mod protection;
pub mod sched_slice;

#[cfg(test)]
mod short_slices;
#[cfg(test)]
mod tests;
