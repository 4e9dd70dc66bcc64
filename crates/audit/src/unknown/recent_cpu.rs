//! Which CPU a task used recently: before the recording, or where a wake-up leaves it open.
//!
//! It is known once a wake-up that was seen stored it.

use schedlab_sched::{RecentUsedCpu, Supposed};
use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use super::Shadow;
use super::about::About;
use super::beyond::{Candidate, Case, Of};
use super::otherwise::Otherwise;

const NAME: &str = "RECENT_CPU";

pub(super) const ABOUT: About = About { beyond, ..About::new(NAME, "which CPU the task used recently") };

/// The recently used CPUs of a task at which a search around `target` would end, if it is unknown which one it used.
pub fn values<'a>(
    shadow: &'a Shadow,
    task: TaskId,
    target: CpuId,
    with: &'a Supposed<'a>,
) -> impl Iterator<Item = Supposed<'a>> {
    let rule = shadow.sched.kernel.rules.recent_used_cpu;
    let open = rule != RecentUsedCpu::Off && !shadow.known(task).recent_known;
    let may_be = move |cpu: &CpuId| {
        shadow.sched.cpus_share_cache(*cpu, target) && shadow.sched.available_idle_cpu(*cpu)
    };
    let cpus = open.then(|| shadow.cpus()).into_iter().flatten().filter(may_be);
    cpus.map(move |cpu| Supposed { recent_used_cpu: Some(cpu), ..*with })
}

fn beyond(case: &Case<'_>, candidates: &mut Vec<Candidate>) {
    let (Of::Wakeup { .. }, task) = (&case.of, case.task) else { return };
    candidates.extend(case.states.iter().map(|&cpu| {
        let had = Otherwise::plain(NAME, format!("the task had used CPU {cpu} recently"));
        Candidate::new(had, move |shadow, look| {
            let known = shadow.sched.task_mut(task).recent_used_cpu.replace(cpu);
            let leads = look(shadow);
            shadow.sched.task_mut(task).recent_used_cpu = known;
            leads
        })
    }));
}
