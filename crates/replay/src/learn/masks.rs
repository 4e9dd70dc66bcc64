//! CPUs that tasks may use, which simulated traces contain: for a new task before its creation, and at each
//! change.

use schedlab_trace::Affinity;
use schedlab_units::Time;

use super::Learner;
use crate::learned::Step;

impl Learner {
    /// A task may use other CPUs from now on, whichever task set that.
    pub(super) fn allowed(&mut self, told: &Affinity, now: Time) {
        let masks = &mut self.programs.learned.masks;
        let mask = masks.iter().position(|mask| *mask == told.allowed).unwrap_or_else(|| {
            masks.push(told.allowed.clone());
            masks.len() - 1
        }) as u32;
        match self.programs.by_pid.get(&told.pid).copied() {
            Some(task) => {
                self.programs.advance(task, now);
                self.programs.flush(task);
                self.programs.step(task, Step::Allowed(mask));
            }
            None => _ = self.masks.insert(told.pid, mask),
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::learn::tests::check;

    #[test]
    fn a_mask_is_that_of_a_task_that_is_born_or_a_step_of_one_that_lives() {
        check(
            "
            0 100 sh-9 allows 0,2 make-10
            0 100 sh-9 forks make-10
            0 100 sh-9 starts make-10
            0 110 sh-9 allows 3 cc1-12
            0 120 sh-9 wakes cc1-12
            0 130 sh-9 allows 1 sh-9
            0 140 sh-9 out S make-10
            0 150 make-10 allows 0-3 cc1-12
            0 160 make-10 out S <idle>-0
            ",
            expect![[r#"
                sh-9, running on 0: fork 10, run 30us, cpus 1, run 10us
                make-10, child of 9: on 0,2, run 20us
                cc1-12, asleep on 3: on 3, cpus 0-3
            "#]],
        );
    }
}
