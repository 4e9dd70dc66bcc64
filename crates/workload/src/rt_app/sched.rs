//! Policy, priority, deadline parameters and clamps of a thread or a phase.

use schedlab_units::Duration;

use crate::tree::{File, Object, Position};
use crate::{Deadline, Policy, SchedAttr, WorkloadError};

/// A policy without its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PolicyName {
    Other,
    Batch,
    Idle,
    Fifo,
    Rr,
    Deadline,
}

const POLICIES: &[(&str, PolicyName)] = &[
    ("SCHED_OTHER", PolicyName::Other),
    ("SCHED_BATCH", PolicyName::Batch),
    ("SCHED_IDLE", PolicyName::Idle),
    ("SCHED_FIFO", PolicyName::Fifo),
    ("SCHED_RR", PolicyName::Rr),
    ("SCHED_DEADLINE", PolicyName::Deadline),
];

impl PolicyName {
    pub fn read(object: &Object, key: &str) -> Result<Option<PolicyName>, WorkloadError> {
        object.read(key, |entry| {
            let name = object.file.string(entry)?;
            let known = POLICIES.iter().find(|(known, _)| *known == name);
            known.map(|(_, policy)| *policy).ok_or_else(|| {
                let names: Vec<&str> = POLICIES.iter().map(|(name, _)| *name).collect();
                object.file.bad(entry.value.at, key, format!("\"{name}\" is not one of {}", names.join(", ")))
            })
        })
    }

    fn of(policy: Policy) -> PolicyName {
        match policy {
            Policy::Normal { .. } => PolicyName::Other,
            Policy::Batch { .. } => PolicyName::Batch,
            Policy::Idle { .. } => PolicyName::Idle,
            Policy::Fifo { .. } => PolicyName::Fifo,
            Policy::Rr { .. } => PolicyName::Rr,
            Policy::Deadline(_) => PolicyName::Deadline,
        }
    }

    /// Whether tasks of this policy may be in a task group.
    pub fn is_fair(self) -> bool {
        matches!(self, PolicyName::Other | PolicyName::Batch | PolicyName::Idle)
    }
}

/// The scheduling keys of a thread or a phase; what they do not set stays.
#[derive(Clone, Debug, Default)]
pub(super) struct SchedKeys {
    /// The place of the first of them.
    at: Position,
    policy: Option<PolicyName>,
    priority: Option<i64>,
    runtime: Option<Duration>,
    deadline: Option<Duration>,
    period: Option<Duration>,
    util_min: Option<u16>,
    util_max: Option<u16>,
}

pub(super) const KEYS: &[&str] =
    &["policy", "priority", "dl-runtime", "dl-deadline", "dl-period", "util_min", "util_max"];

impl SchedKeys {
    pub fn read(object: &Object) -> Result<SchedKeys, WorkloadError> {
        let file = object.file;
        let us = |key| object.count(key).map(|us| us.map(|us| Duration::micros(us.into())));
        // -1 stands for "no change", as if the key were not there.
        let clamp = |key| {
            let value = object.read(key, |entry| file.int(entry, -1..=1024))?;
            Ok(value.filter(|&v| v >= 0).map(|v| v as u16))
        };
        let named = object.entries.iter().find(|entry| KEYS.contains(&entry.key.as_str()));
        let keys = SchedKeys {
            at: named.map_or(object.at, |entry| entry.at),
            policy: PolicyName::read(object, "policy")?,
            priority: object.read("priority", |entry| file.int(entry, -20..=99))?,
            runtime: us("dl-runtime")?,
            deadline: us("dl-deadline")?,
            period: us("dl-period")?,
            util_min: clamp("util_min")?,
            util_max: clamp("util_max")?,
        };
        if let (Some(min), Some(max)) = (keys.util_min, keys.util_max)
            && min > max
        {
            return Err(file.bad(object.at, "util_min", format!("{min} is above util_max, {max}")));
        }
        Ok(keys)
    }

    /// Fills in a task's deadline parameters from their old spelling.
    pub fn legacy(&mut self, runtime: Option<u32>, deadline: Option<u32>, period: Option<u32>) {
        let us = |us: u32| Duration::micros(us.into());
        self.runtime = self.runtime.or(runtime.map(us));
        self.deadline = self.deadline.or(deadline.map(us));
        self.period = self.period.or(period.map(us));
    }

    pub fn is_empty(&self) -> bool {
        let SchedKeys { at: _, policy, priority, runtime, deadline, period, util_min, util_max } = self;
        policy.is_none()
            && priority.is_none()
            && (runtime.or(*deadline).or(*period)).is_none()
            && util_min.or(*util_max).is_none()
    }

    /// With a policy for tasks that name none.
    pub fn or_policy(self, default: PolicyName) -> SchedKeys {
        SchedKeys { policy: self.policy.or(Some(default)), ..self }
    }

    /// The attributes after these keys were applied to a thread that has `before`.
    pub fn apply(&self, file: File, before: SchedAttr) -> Result<SchedAttr, WorkloadError> {
        let name = self.policy.unwrap_or(PolicyName::of(before.policy));
        let kept = |policy| match policy {
            Policy::Normal { nice } | Policy::Batch { nice } | Policy::Idle { nice } => Some(i64::from(nice)),
            Policy::Fifo { priority } | Policy::Rr { priority } => Some(i64::from(priority)),
            Policy::Deadline(_) => None,
        };
        let inherited = if self.policy.is_none() { kept(before.policy) } else { None };
        let priority = self.priority.or(inherited);
        let bounded = |low: i64, high: i64, default: i64| {
            let value = priority.unwrap_or(default);
            if (low..=high).contains(&value) {
                Ok(value)
            } else {
                Err(file.bad(
                    self.at,
                    "priority",
                    format!("{value} is outside {low} to {high} for this policy"),
                ))
            }
        };
        let nice = || bounded(-20, 19, 0).map(|nice| nice as i8);
        let rt = || bounded(1, 99, 10).map(|priority| priority as u8);
        let policy = match name {
            PolicyName::Other => Policy::Normal { nice: nice()? },
            PolicyName::Batch => Policy::Batch { nice: nice()? },
            PolicyName::Idle => Policy::Idle { nice: nice()? },
            PolicyName::Fifo => Policy::Fifo { priority: rt()? },
            PolicyName::Rr => Policy::Rr { priority: rt()? },
            PolicyName::Deadline => self.deadline(file, before.policy)?,
        };
        let slice = if name.is_fair() { self.runtime.filter(|r| *r > Duration::ZERO) } else { None };
        let attr = SchedAttr {
            policy,
            slice: slice.or(if name.is_fair() { before.slice } else { None }),
            util_min: self.util_min.or(before.util_min),
            util_max: self.util_max.or(before.util_max),
        };
        Ok(attr)
    }

    fn deadline(&self, file: File, before: Policy) -> Result<Policy, WorkloadError> {
        let Some(runtime) = self.runtime else {
            let none = file.bad(self.at, "dl-runtime", "SCHED_DEADLINE needs a runtime, in microseconds");
            return if matches!(before, Policy::Deadline(_)) { Ok(before) } else { Err(none) };
        };
        let period = self.period.unwrap_or(runtime);
        let deadline = self.deadline.unwrap_or(period);
        if runtime > deadline || deadline > period {
            let why = format!(
                "runtime {runtime}, deadline {deadline} and period {period} must not fall in this order"
            );
            return Err(file.bad(self.at, "dl-runtime", why));
        }
        Ok(Policy::Deadline(Deadline { runtime, deadline, period }))
    }
}
