//! Moving tasks between CPUs: periodic, newly idle, nohz and active balancing.
//!
//! [`Sched::decide_balance`](crate::Sched::decide_balance) is the heart: one pass of one
//! CPU over one domain, from the question which CPU does it to the list of tasks that move.

mod active_balance;
mod apply;
mod balance_fair;
mod calculate_imbalance;
mod can_migrate_llc;
mod can_migrate_task;
pub(crate) mod cpu_load_idx;
mod decision;
mod detach_tasks;
#[cfg(test)]
mod drawings;
mod env;
mod find_busiest_group;
mod find_busiest_group_load;
mod find_busiest_queue;
mod group_type;
mod idle_cpu_scan;
mod load_balance;
mod misfit;
mod need_active_balance;
mod newidle_balance;
mod nohz_balance;
mod nohz_balancer_kick;
mod numa_imbalance;
mod numbers;
mod preference;
mod rebalance_domains;
mod runtimes;
mod sched_cache;
mod should_we_balance;
mod task_hot;
mod update_group_capacity;

pub use can_migrate_task::CanMigrate;
pub use decision::{BalanceDecision, GroupSeen, MigrationType, NotMoved, Step};
pub use group_type::{GroupType, SgLbStats};
pub use idle_cpu_scan::nr_idle_scan;
pub use newidle_balance::{Newidle, NewidleOutcome};
pub use nohz_balancer_kick::NohzKick;
pub use runtimes::EpochTime;
pub(crate) use sched_cache::NO_PLACE;
pub use sched_cache::{CacheGroup, CacheGroups, SchedCache};
