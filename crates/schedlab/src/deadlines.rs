//! Deadline tasks on CPUs of unequal capacity: what is modelled, and what is not.

use schedlab_machine::Machine;
use schedlab_workload::{Policy, Workload};

/// A note for a workload with deadline tasks on a machine whose CPUs differ.
pub fn deadline_note(machine: &Machine, workload: &Workload) -> Option<String> {
    let mut capacities = machine.topology.cpus().map(|(_, cpu)| cpu.capacity);
    let first = capacities.next()?;
    let is_unequal = capacities.any(|capacity| capacity != first);
    let has_deadlines = workload.attrs.iter().any(|attr| matches!(attr.policy, Policy::Deadline(_)));
    (is_unequal && has_deadlines).then(|| {
        format!(
            "the CPUs of {} differ in capacity: a deadline task is placed here without a look at whether a CPU is large \
             enough for it, as kernels before v5.9 do it, and there is no admission control; its budget lasts longer on a \
             small CPU",
            machine.name()
        )
    })
}

#[cfg(test)]
mod tests {
    use crate::{NoFiles, Scenario};

    #[test]
    fn only_deadline_tasks_on_unequal_cpus_are_noted() {
        let note = |machine: &str, task: &str| {
            let text = format!(
                "machine = \"{machine}\"\nkernels = [\"v6.12\"]\nlimit = \"1ms\"\n[workload]\nname = \"t\"\n\
                 [[workload.task]]\nname = \"t\"\n{task}\nprogram = \"run 1ms\"\n"
            );
            let scenario = Scenario::parse("t.toml", &text, &NoFiles).unwrap();
            super::deadline_note(&scenario.machine, &scenario.rows[0].workload).is_some()
        };
        let deadline = "policy = \"deadline\"\nruntime = \"1ms\"\ndeadline = \"2ms\"\nperiod = \"2ms\"";
        assert!(note("1x1x2:capacity=0/512", deadline));
        assert!(!note("1x1x2", deadline));
        assert!(!note("1x1x2:capacity=0/512", "nice = 1"));
    }
}
