//! CPUs that go offline and come back: their hotplug threads do the same in a replay.

use schedlab_trace::{Event, Hotplug};
use schedlab_workload::Plug;

use super::Learner;
use crate::learned::Step;

impl Learner {
    /// A CPU goes offline or comes back.
    pub(super) fn plug(&mut self, event: &Event) {
        let Some((cpu, step)) = self.hotplugs.event(event) else { return };
        let to = match step {
            Hotplug::Deactivating => Plug::Inactive,
            Hotplug::Parked => Plug::Offline,
            Hotplug::Called => Plug::Online,
            Hotplug::Active => Plug::Active,
            Hotplug::Deactivated | Hotplug::Dead | Hotplug::Starting | Hotplug::Done => return,
        };
        if let Some(task) = self.current(event) {
            self.programs.acts(task, event.time);
            self.programs.step(task, Step::Hotplug { cpu, to });
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::learn::tests::check;

    #[test]
    fn the_thread_that_takes_a_cpu_out_and_brings_it_back_does_so_in_a_replay() {
        check(
            "
            0 100 init-1 wakes cpuhp/3-34
            3 101 a-10 out R cpuhp/3-34
            3 104 cpuhp/3-34 out D a-10
            3 105 a-10 out R migration/3-36@0
            3 106 migration/3-36@0 out S <idle>-0
            0 200 rcu_preempt-15 wakes cpuhp/3-34
            3 203 <idle>-0 out R cpuhp/3-34
            3 205 cpuhp/3-34 wakes init-1
            3 206 cpuhp/3-34 out P <idle>-0
            3 210 <idle>-0 out R migration/3-36@0
            3 800 <idle>-0 wakes migration/3-36@0
            0 801 init-1 wakes cpuhp/3-34
            3 810 <idle>-0 out R cpuhp/3-34
            3 815 cpuhp/3-34 wakes init-1
            3 816 cpuhp/3-34 out S <idle>-0
            ",
            expect![[r#"
                cpuhp/3-34, asleep on 3: wait for 1, run 3us, hotplug 3 inactive, heard 3us after, wait for 15, run 2us, wake 1, run 1us, hotplug 3 offline, heard 9us after, wait for 1, run 5us, hotplug 3 active, run 1us
                init-1, running on 0: wake 34, wait for 34, run 596us, hotplug 3 online, wake 34, run 15us
                a-10, running on 3: run 2us
                migration/3-36, runnable on 3: left out run 1us, sleep 104us until 110us after the last
                rcu_preempt-15, running on 0: wake 34
            "#]],
        );
    }
}
