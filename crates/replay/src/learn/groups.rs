//! Moves of tasks between groups; each is a step of the task wherever it is in its program.

use schedlab_recording::moves_with;
use schedlab_units::{Pid, Time};

use super::Learner;
use crate::learned::{Step, TaskIndex};

impl Learner {
    /// A process, named by its leader, or a single thread is moved to a cgroup.
    pub(super) fn attached(&mut self, hierarchy: i32, named: Pid, path: &str, now: Time) {
        if !self.known.shares_out(hierarchy) {
            return;
        }
        let groups = &mut self.programs.learned.groups;
        let group = groups.iter().position(|group| group == path).unwrap_or_else(|| {
            groups.push(path.to_owned());
            groups.len() - 1
        });
        let group = group as u32;
        let tasks = self.programs.by_pid.iter().map(|(&pid, &task)| (pid, task));
        let moves = |&(pid, task): &(Pid, TaskIndex)| {
            moves_with(pid, self.programs.lives[task.index()].process, named)
        };
        for (_, task) in tasks.filter(moves).collect::<Vec<_>>() {
            // Another task may move it while it sleeps or is just being woken.
            self.programs.advance(task, now);
            self.programs.flush(task);
            self.programs.step(task, Step::Group(group));
        }
        self.moved.insert(named, group);
        if !self.programs.by_pid.contains_key(&named) {
            self.unborn.insert(named, group);
        }
    }

    /// The first event of a task from before the recording: it is in the group to which it, or its process,
    /// was moved meanwhile.
    pub(super) fn was_moved(&mut self, task: TaskIndex) {
        let (pid, process) =
            (self.programs.learned.tasks[task.index()].pid, self.programs.life(task).process);
        if let Some(&group) = self.moved.get(&pid).or_else(|| self.moved.get(&process)) {
            self.programs.step(task, Step::Group(group));
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use schedlab_recording::{GroupFiles, Groups};

    use crate::Known;
    use crate::learn::tests::learn_knowing;

    /// Checks a recording with this list of tasks before it.
    fn check(before: &str, short: &str, expected: Expect) {
        let files = GroupFiles { before, after: before, ..GroupFiles::default() };
        let mut known = Known::default();
        known.members(Groups::read(&files).unwrap().0);
        expected.assert_eq(&learn_knowing(known, short).unwrap().to_string());
    }

    #[test]
    fn a_process_moves_as_a_whole_and_a_thread_alone() {
        check(
            "hierarchy 0\n",
            "0 100 sh-9 wakes make-10
             0 110 sh-9 out S make-10
             0 120 make-10 clones 3d0f00 make-11
             0 120 make-10 forks make-11
             0 120 make-10 starts make-11
             0 130 make-10 clones 1200000 make-12
             0 130 make-10 forks make-12
             0 130 make-10 starts make-12
             1 140 <idle>-0 out R make-11
             1 150 make-11 attaches 0 /a make-10
             1 160 make-11 attaches 0 /b make-11
             1 170 make-11 out S <idle>-0
             0 180 make-10 out S <idle>-0",
            expect![[r#"
                make-10, asleep on 3: wait for 9, run 10us, fork 11, run 10us, fork 12, run 20us, group /a, run 30us
                sh-9, running on 0: wake 10, run 10us
                make-11, thread of 10: run 10us, group /a, run 10us, group /b, run 10us
                make-12, child of 10:
            "#]],
        );
    }

    #[test]
    fn a_task_moved_before_it_was_born_begins_there_and_groups_have_what_the_trace_gives_them() {
        let short = "0 100 <idle>-0 makes 7 /g
             0 100 <idle>-0 gives 7 300
             0 100 <idle>-0 gives 8 400
             0 105 sh-9 wakes make-10
             0 110 sh-9 attaches 0 /g cc1-11
             0 110 sh-9 forks cc1-11
             0 110 sh-9 starts cc1-11
             0 120 sh-9 forks as-12
             0 120 sh-9 starts as-12
             0 130 sh-9 out S <idle>-0";
        let learned = learn_knowing(crate::Known::default(), short).unwrap();
        expect![[r#"
            make-10, asleep on 3:
            sh-9, running on 0: run 10us, fork 11, run 10us, fork 12, run 10us
            cc1-11, child of 9: in /g,
            as-12, child of 9:
        "#]]
        .assert_eq(&learned.to_string());
        let given = learned.given.iter().map(|(path, given)| (path.as_str(), given.cpu_shares()));
        assert_eq!(given.collect::<Vec<_>>(), [("/g", 300)]);
    }

    #[test]
    fn a_task_from_before_the_recording_moves_with_its_process_whether_met_or_not() {
        check(
            "hierarchy 3\n10 10 / - 0 db\n11 10 / - 0 db\n12 10 / - 0 writer\n13 13 / - 0 sh\n",
            "0 100 sh-13 wakes db-11
             0 110 sh-13 attaches 3 /a db-10
             0 120 sh-13 attaches 1 /systemd db-10
             0 130 sh-13 wakes writer-12
             0 140 sh-13 out S db-11
             0 150 db-11 out S writer-12
             0 160 writer-12 out S <idle>-0",
            expect![[r#"
                db-11, asleep on 3: group /a, wait for 13, run 10us
                sh-13, running on 0: wake 11, run 30us, wake 12, run 10us
                writer-12, asleep on 3: group /a, wait for 13, run 10us
            "#]],
        );
    }
}
