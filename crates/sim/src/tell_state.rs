//! Writes the scheduler's state to the trace as it changes: averages, virtual times, numbers of tasks.
//!
//! Done only for a sink that requests it. Changes are reported after each event of the engine, so several updates at
//! one instant become one event.

use schedlab_sched::{Sched, Scheduler, SeId, TgId};
use schedlab_topology::CpuId;
use schedlab_trace::{About, Kind, State};
use schedlab_units::TaskId;

use crate::emit::Context;
use crate::engine::Engine;

/// The state reported last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    cpus: Vec<OneCpu>,
    queues: Vec<[u64; 3]>,
    tasks: Vec<OneTask>,
    domains: Vec<u64>,
    overutilized: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct OneCpu {
    nr_running: u32,
    util_est: u32,
    rt: u64,
    dl: u64,
    irq: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct OneTask {
    avg: [u64; 3],
    util_est: u64,
    entity: [i64; 4],
}

impl<S: Scheduler> Engine<'_, S> {
    /// Reports the state that changed since the last report.
    pub fn tell_state(&mut self, cpu: CpuId) {
        let Some(mut told) = self.state_told.take() else { return };
        let mut states = Vec::new();
        if let Some(sched) = self.sched.state() {
            changed_cpus(sched, &mut told, &mut states);
            self.changed_queues(sched, &mut told, &mut states);
            self.changed_tasks(sched, &mut told, &mut states);
            self.changed_domains(sched, &mut told, &mut states);
        }
        self.state_told = Some(told);
        for state in states {
            self.emit(cpu, Context::Task, Kind::State(Box::new(state)));
        }
    }

    fn changed_queues(&self, sched: &Sched, told: &mut Told, states: &mut Vec<State>) {
        let cpus = sched.rqs.len();
        told.queues.resize(sched.tgs.len() * cpus, [0; 3]);
        for index in 0..told.queues.len() {
            // A queue that does not exist yet has no averages.
            let (tg, cpu) = (TgId((index / cpus) as u32), CpuId::from(index % cpus));
            let Some((cfs, _)) = sched.on_cpu(tg, cpu) else { continue };
            let queue = sched.cfs(cfs);
            let now = [queue.avg.load_avg, queue.avg.runnable_avg, queue.avg.util_avg];
            if std::mem::replace(&mut told.queues[index], now) != now {
                let about = About::Queue(queue.cpu, self.path_of(queue.tg).into());
                let [load, runnable, util] = now.map(|value| value as i64);
                let values = vec![("load", load), ("runnable", runnable), ("util", util)];
                states.push(State { point: "pelt_cfs", about, values });
            }
        }
    }

    fn changed_tasks(&self, sched: &Sched, told: &mut Told, states: &mut Vec<State>) {
        told.tasks.resize(self.tasks.len(), OneTask::default());
        for index in 0..self.tasks.len() {
            let entry = &self.tasks[index];
            if entry.ended {
                continue;
            }
            let task = sched.task(TaskId(index as u32));
            let se = &task.se;
            let left = (se.slice as i64) - (se.sum_exec_runtime - se.prev_sum_exec_runtime) as i64;
            // Only a queued task has a meaningful lag; it is relative to the queue's virtual time.
            let lag = match se.cfs_rq {
                Some(cfs) if se.on_rq => {
                    sched.entity_lag(cfs, SeId(index as u32), sched.seen_avg_vruntime(cfs))
                }
                _ => se.vlag,
            };
            let now = OneTask {
                avg: [se.avg.load_avg, se.avg.runnable_avg, se.avg.util_avg],
                util_est: sched.util_est_last(TaskId(index as u32)).into(),
                entity: [se.vruntime as i64, se.deadline as i64, lag, left],
            };
            let before = std::mem::replace(&mut told.tasks[index], now);
            let about = || About::Task(task.cpu, entry.comm, entry.pid);
            if now.avg != before.avg {
                let [load, runnable, util] = now.avg.map(|value| value as i64);
                let values = vec![("load", load), ("runnable", runnable), ("util", util)];
                states.push(State { point: "pelt_se", about: about(), values });
            }
            if now.util_est != before.util_est {
                let values = vec![("enqueued", now.util_est as i64), ("util", now.avg[2] as i64)];
                states.push(State { point: "sched_util_est_se", about: about(), values });
            }
            if now.entity != before.entity {
                let [vruntime, deadline, lag, left] = now.entity;
                let values =
                    vec![("vruntime", vruntime), ("deadline", deadline), ("lag", lag), ("slice_left", left)];
                states.push(State { point: "schedlab_se", about: about(), values });
            }
        }
    }

    fn changed_domains(&self, sched: &Sched, told: &mut Told, states: &mut Vec<State>) {
        told.domains.resize(sched.domains.sds.len(), 0);
        for cpu in self.machine.topology.online().iter() {
            for (id, sd) in sched.domains.walk(cpu) {
                let interval = sd.balance_interval;
                if std::mem::replace(&mut told.domains[id.0 as usize], sd.last_balance) == sd.last_balance {
                    continue;
                }
                let about = About::Domain(cpu, sd.name.to_string().into());
                let tick = sched.tick_ns() as i64;
                let values = vec![("last", sd.last_balance as i64 * tick), ("interval_ms", interval as i64)];
                states.push(State { point: "schedlab_next_balance", about, values });
            }
        }
    }

    fn path_of(&self, tg: TgId) -> &str {
        self.groups
            .iter()
            .position(|&known| known == tg)
            .map_or("/", |index| &self.workload.groups[index].path)
    }
}

fn changed_cpus(sched: &Sched, told: &mut Told, states: &mut Vec<State>) {
    told.cpus.resize(sched.rqs.len(), OneCpu::default());
    let mut overutilized = false;
    for index in 0..sched.rqs.len() {
        let cpu = CpuId::from(index);
        let rq = &sched.rqs[cpu];
        let root = sched.cfs(sched.tg(TgId::ROOT).cfs_rq[index]);
        // A CPU is overutilized if less than a fifth of it is left.
        overutilized |= rq.online && root.avg.util_avg * 1280 > rq.cpu_capacity_orig * 1024;
        let now = OneCpu {
            nr_running: rq.nr_running,
            util_est: rq.util_est_enqueued,
            rt: rq.avg_rt.util_avg,
            dl: rq.avg_dl.util_avg,
            irq: rq.avg_irq.util_avg,
        };
        let before = std::mem::replace(&mut told.cpus[index], now);
        let mut of_cpu = |point, values| states.push(State { point, about: About::Cpu(cpu), values });
        if now.nr_running != before.nr_running {
            let change = i64::from(now.nr_running) - i64::from(before.nr_running);
            of_cpu(
                "sched_update_nr_running",
                vec![("change", change), ("nr_running", now.nr_running.into())],
            );
        }
        for (point, before, now) in [
            ("pelt_rt", before.rt, now.rt),
            ("pelt_dl", before.dl, now.dl),
            ("pelt_irq", before.irq, now.irq),
        ] {
            if before != now {
                of_cpu(point, vec![("util", now as i64)]);
            }
        }
        if now.util_est != before.util_est {
            let about = About::Queue(cpu, "/".into());
            let values = vec![("enqueued", i64::from(now.util_est)), ("util", root.avg.util_avg as i64)];
            states.push(State { point: "sched_util_est_cfs", about, values });
        }
    }
    if std::mem::replace(&mut told.overutilized, overutilized) != overutilized {
        let values = vec![("overutilized", overutilized.into())];
        states.push(State { point: "sched_overutilized", about: About::Machine, values });
    }
}
