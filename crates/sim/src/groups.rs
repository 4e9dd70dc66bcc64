//! Task groups: they are created before anything runs, and the trace contains events for them.
//!
//! A group is a cgroup of version 2; they are numbered in order of creation, after the root, which is 1. The kernel has
//! events for everything but a group's settings. It has no event for a new task's being in the group of its parent
//! either.
//!
//! Kernel: TRACE_CGROUP_PATH(), kernel/cgroup/cgroup-internal.h; include/trace/events/cgroup.h, v6.12.

use std::sync::Arc;

use schedlab_sched::{Scheduler, TgId};
use schedlab_topology::{CpuId, CpuMask};
use schedlab_trace::{Group, Kind};
use schedlab_units::{Duration, TaskId};
use schedlab_workload::{GroupId, Quota};

use crate::emit::Context;
use crate::engine::Engine;

/// The number of the hierarchy of version 2.
const HIERARCHY: i32 = 0;

impl<S: Scheduler> Engine<'_, S> {
    /// Creates the workload's groups.
    pub fn make_groups(&mut self) {
        // The task that starts the workload creates its groups, in memory of its own node.
        let first = self.workload.roots().find_map(|spec| self.workload.task(spec).start_cpu);
        let creator = first.unwrap_or_else(|| self.launcher());
        for group in &self.workload.groups {
            let parent = group.parent.map_or(TgId::ROOT, |parent| self.groups[parent.index()]);
            let tg = self.sched.new_group(parent, group.shares << 10, creator, self.now);
            if group.idle {
                self.sched.set_idle_group(tg, true, self.now);
            }
            if group.util_min.or(group.util_max).is_some() {
                let [min, max] = [group.util_min, group.util_max].map(|bound| bound.map(u32::from));
                self.sched.set_group_uclamp(tg, min, max);
            }
            if let Some(quota) = group.quota {
                self.sched.set_bandwidth(tg, Some(quota.quota.0), quota.period.0, quota.burst.0, self.now);
            }
            self.groups.push(tg);
        }
        self.effects(creator, Context::Task);
        self.tell_groups(creator);
    }

    /// A group's cpuset: its own, or that of the nearest group above that has one.
    pub fn cpuset(&self, group: GroupId) -> Option<Arc<CpuMask>> {
        let mut next = Some(group);
        while let Some(id) = next {
            let spec = &self.workload.groups[id.index()];
            if let Some(list) = spec.cpus {
                return Some(self.masks[list.index()].clone());
            }
            next = spec.parent;
        }
        None
    }

    /// Writes to the trace that the workload's groups are made, and their settings.
    fn tell_groups(&mut self, creator: CpuId) {
        if !self.tracing {
            return;
        }
        for number in 0..self.workload.groups.len() as u32 {
            let group = GroupId(number);
            let (id, level, path) = self.cgroup(Some(group));
            self.emit(creator, Context::Task, Kind::CgroupMkdir { root: HIERARCHY, id, level, path });
            let spec = &self.workload.groups[group.index()];
            let limit = |of: fn(&Quota) -> Duration| spec.quota.as_ref().map(|quota| of(quota).0);
            let given = Group {
                id,
                shares: spec.shares,
                idle: spec.idle,
                quota_ns: limit(|quota| quota.quota),
                period_ns: limit(|quota| quota.period),
                burst_ns: limit(|quota| quota.burst),
            };
            self.emit(creator, Context::Task, Kind::Group(Box::new(given)));
        }
    }

    /// `cgroup_attach_task`.
    pub fn emit_attach(&mut self, cpu: CpuId, task: TaskId, group: Option<GroupId>) {
        if self.tracing {
            let ((comm, pid), (dst_id, dst_level, dst_path)) = (self.who(task), self.cgroup(group));
            let dst_root = HIERARCHY;
            let kind = Kind::CgroupAttachTask { dst_root, dst_id, dst_level, dst_path, pid, comm };
            self.emit(cpu, Context::Task, kind);
        }
    }

    /// Number, level and path of a group; `None` is the root.
    fn cgroup(&self, group: Option<GroupId>) -> (u64, i32, Box<str>) {
        let Some(group) = group else { return (1, 0, "/".into()) };
        let path = self.workload.groups[group.index()].path.as_str();
        (u64::from(group.0) + 2, path.matches('/').count() as i32, path.into())
    }
}
