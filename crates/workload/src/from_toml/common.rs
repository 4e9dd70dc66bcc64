//! Settings for the tasks of every model: policy, nice value, slice, group, CPUs.
//!
//! They apply to the tasks that are not forked; forked tasks inherit them. A task with settings of its own, such as a
//! real-time thread of cyclictest, keeps those.

use super::op::SchedWords;
use crate::{CpuList, Param, ParamValue, SchedAttr, SpecId, Start, WorkloadBuilder};

/// The settings of all tasks of a model.
#[derive(Clone, Debug, Default)]
pub(super) struct Common {
    policy: Option<String>,
    words: SchedWords,
    has_words: bool,
    cgroup: Option<String>,
    cpus: Option<CpuList>,
}

impl Common {
    /// Their names.
    pub const KEYS: &[&str] =
        &["policy", "nice", "priority", "slice", "util_min", "util_max", "cgroup", "cpus"];

    /// Sets one; `None` if there is none of that name.
    pub fn set(&mut self, name: &str, value: &ParamValue) -> Option<Result<(), String>> {
        if !Common::KEYS.contains(&name) {
            return None;
        }
        Some(match name {
            "policy" => self.word(value).map(|word| self.policy = Some(word)),
            "cgroup" => self.word(value).map(|word| self.cgroup = Some(word)),
            "cpus" => Option::<CpuList>::read(value).map(|cpus| self.cpus = cpus),
            _ => self.word(value).and_then(|word| {
                self.has_words = true;
                self.words.set(name, &word)
            }),
        })
    }

    fn word(&self, value: &ParamValue) -> Result<String, String> {
        match value {
            ParamValue::Int(n) => Ok(n.to_string()),
            ParamValue::Text(text) => Ok(text.clone()),
            ParamValue::Bool(_) => Err("a number or text is expected, not true or false".to_string()),
        }
    }

    /// The attributes, if any are given.
    pub fn attr(&self) -> Result<Option<SchedAttr>, String> {
        if self.policy.is_none() && !self.has_words {
            return Ok(None);
        }
        self.words.attr(self.policy.as_deref().unwrap_or("other")).map(Some)
    }

    /// Applies them to the tasks from `first` on; `group` is the group of tasks that name none.
    pub fn give(&self, w: &mut WorkloadBuilder, first: SpecId, group: Option<&str>) -> Result<(), String> {
        let attr = self.attr()?.map(|attr| w.attr(attr));
        let cpus = self.cpus.clone().map(|cpus| w.cpus(cpus));
        let group = self.cgroup.as_deref().or(group).and_then(|path| w.group(path));
        w.workload_mut().change_tasks(first, |task| {
            if task.start != Start::ByFork {
                task.attr = task.attr.or(attr);
                task.cpus = task.cpus.or(cpus);
                task.group = task.group.or(group);
            }
        });
        Ok(())
    }
}
