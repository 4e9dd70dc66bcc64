//! Files as users write them, next to the resulting programs.

use expect_test::{Expect, expect};

use super::RtApp;

/// The file's text; `tasks` and the other given keys are put into the outer object.
fn parse(keys: &str) -> Result<RtApp, crate::WorkloadError> {
    RtApp::parse(&format!("{{{keys}}}"), "f.json")
}

/// The whole description of a file's workload except the main thread's program.
fn check(keys: &str, expected: Expect) {
    let seen = match parse(keys) {
        Ok(RtApp { workload, notes }) => {
            let text = workload.describe();
            let text = text.split("\nprogram main\n").next().unwrap().to_string() + "\n";
            notes.iter().fold(text, |text, note| format!("{text}note: {note}\n"))
        }
        Err(error) => format!("{error}\n"),
    };
    expected.assert_eq(&seen);
}

/// The programs alone.
fn check_programs(keys: &str, expected: Expect) {
    let text = parse(keys).map(|read| read.workload.describe()).unwrap_or_else(|error| error.to_string());
    let from = text.find("\nprogram ").map_or(0, |newline| newline + 1);
    expected.assert_eq(text[from..].split("program main\n").next().unwrap());
}

#[test]
fn a_thread_without_phases_is_its_own_phase() {
    check(
        "'tasks': {'a': {'run': 1000, 'sleep': 9000}}",
        expect![[r#"
            f: 2 tasks, 1 of them from the start
            barrier threads_barrier for 1, spinning 0
            tasks
                 0 a-0, forked, thread of process 0: program "a, first thread"
                 1 rt-app, from the start, thread of process 0: program main
            program "a, first thread"
              own-name
              zero
              barrier threads_barrier
              loop forever
                run 1ms
                sleep 9ms
              end
        "#]],
    );
    check_programs(
        "'tasks': {'a': {'loop': 3, 'run': 1000, 'sleep': 9000}}",
        expect![[r#"
            program "a, first thread"
              own-name
              zero
              barrier threads_barrier
              loop 3
                run 1ms
                sleep 9ms
              end
        "#]],
    );
}

#[test]
fn phases_repeat_inside_the_thread() {
    check_programs(
        "'tasks': {'a': {'loop': 2, 'phases': {
            'p': {'loop': 5, 'run': 1}, 'q': {'run': 2}, 'r': {'loop': -1, 'run': 3}}}}",
        expect![[r#"
            program "a, first thread"
              own-name
              zero
              barrier threads_barrier
              loop 2
                loop 5
                  run 1us
                end
                run 2us
                loop forever
                  run 3us
                end
              end
        "#]],
    );
}

#[test]
fn doubled_keys_are_all_done_in_order() {
    check_programs(
        "'tasks': {'a': {'run': 1, 'sleep': 2, 'run': 3, 'sleep0': 4, 'run': 5},
                   'a': {'phases': {'p': {'run': 6}, 'p': {'run': 7}}}}",
        expect![[r#"
            program "a, first thread"
              own-name
              zero
              barrier threads_barrier
              loop forever
                run 1us
                sleep 2us
                run 3us
                sleep 4us
                run 5us
              end
            program a1
              own-name
              barrier threads_barrier
              loop forever
                run 6us
                run 7us
              end
        "#]],
    );
}

#[test]
fn instances_share_a_program_and_count_on_through_the_file() {
    check(
        "'tasks': {'a': {'instance': 3, 'run': 1}, 'b': {'delay': 500, 'run': 2}}",
        expect![[r#"
            f: 5 tasks, 1 of them from the start
            barrier threads_barrier for 4, spinning 0
            tasks
                 0 a-0, forked, thread of process 0: program "a, first thread"
                 1 a-1 .. a-2 (2), forked, thread of process 0: program a
                 3 b-3, forked, thread of process 0: program b
                 4 rt-app, from the start, thread of process 0: program main
            program "a, first thread"
              own-name
              zero
              barrier threads_barrier
              loop forever
                run 1us
              end
            program a
              own-name
              barrier threads_barrier
              loop forever
                run 1us
              end
            program b
              own-name
              barrier threads_barrier
              origin 500us
              loop forever
                run 2us
              end
        "#]],
    );
}

#[test]
fn timers_count_from_the_common_start_and_the_delay() {
    check(
        "'tasks': {
            'a': {'delay': 100, 'run': 1, 'timer': {'ref': 'tick', 'period': 1000}},
            'b': {'run': 1, 'timer': {'ref': 'tick', 'period': 500, 'mode': 'absolute'},
                  'timer1': {'ref': 'unique', 'period': 10}, 'timer2': {'ref': 'unique2', 'period': 20},
                  'timer3': {'ref': 'unique', 'period': 30}}}",
        expect![[r#"
            f: 3 tasks, 1 of them from the start
            barrier threads_barrier for 2, spinning 0
            timer tick
            tasks
                 0 a-0, forked, thread of process 0: program "a, first thread"
                 1 b-1, forked, thread of process 0: program b
                 2 rt-app, from the start, thread of process 0: program main
            program "a, first thread"
              own-name
              zero
              barrier threads_barrier
              origin 100us
              loop forever
                run 1us
                timer tick 1ms keep-grid
              end
            program b
              own-name
              barrier threads_barrier
              origin 0
              loop forever
                run 1us
                timer tick 500us keep-grid
                own-timer 0 10us
                own-timer 1 20us
                own-timer 0 30us
              end
        "#]],
    );
}

#[test]
fn locks_conditions_and_semaphores() {
    check_programs(
        "'tasks': {
            'a': {'lock': 'm', 'wait': {'ref': 'c', 'mutex': 'm'}, 'unlock': 'm', 'sem_post': 's'},
            'b': {'lock': 'm', 'sync': {'ref': 'c', 'mutex': 'm'}, 'unlock': 'm', 'signal': 'c', 'broad': 'c', 'sem_wait': 's'},
            'c': {'suspend', 'run': 1, 'resume': 'a', 'suspend0': 'other', 'yield': ''}}",
        expect![[r#"
            program "a, first thread"
              own-name
              zero
              barrier threads_barrier
              loop forever
                lock m
                wait c m
                unlock m
                post s
              end
            program b
              own-name
              barrier threads_barrier
              loop forever
                lock m
                signal c
                wait c m
                unlock m
                signal c
                broadcast c
                take s
              end
            program c
              own-name
              barrier threads_barrier
              loop forever
                lock c
                wait c c
                unlock c
                run 1us
                lock a
                broadcast a
                unlock a
                lock other
                wait other other
                unlock other
                yield
              end
        "#]],
    );
}

#[test]
fn a_barrier_counts_the_instances_of_all_references() {
    check(
        "'tasks': {'a': {'instance': 3, 'barrier': 'b', 'run': 1}, 'c': {'barrier': 'b', 'run': 1}}",
        expect![[r#"
            f: 5 tasks, 1 of them from the start
            barrier threads_barrier for 4, spinning 0
            barrier b for 4, spinning 0
            tasks
                 0 a-0, forked, thread of process 0: program "a, first thread"
                 1 a-1 .. a-2 (2), forked, thread of process 0: program a
                 3 c-3, forked, thread of process 0: program c
                 4 rt-app, from the start, thread of process 0: program main
            program "a, first thread"
              own-name
              zero
              barrier threads_barrier
              loop forever
                barrier b
                run 1us
              end
            program a
              own-name
              barrier threads_barrier
              loop forever
                barrier b
                run 1us
              end
            program c
              own-name
              barrier threads_barrier
              loop forever
                barrier b
                run 1us
              end
        "#]],
    );
    // Two references by one thread count twice, as in the tool: this never makes progress.
    check(
        "'tasks': {'a': {'barrier': 'b', 'run': 1, 'barrier1': 'b'}}",
        expect![[r#"
            f.json: barrier "b": it waits for 2 parties but only 1 tasks ever reach it
        "#]],
    );
}

#[test]
fn policies_apply_where_they_stand() {
    check_programs(
        "'global': {'default_policy': 'SCHED_FIFO'}, 'tasks': {
            'a': {'run': 1},
            'b': {'policy': 'SCHED_OTHER', 'priority': -5, 'dl-runtime': 3000, 'run': 1},
            'c': {'policy': 'SCHED_DEADLINE', 'dl-runtime': 2000, 'dl-period': 9000, 'run': 1},
            'd': {'policy': 'SCHED_DEADLINE', 'runtime': 2000, 'deadline': 5000, 'period': 9000, 'phases': {'p': {'run': 1}}},
            'e': {'policy': 'SCHED_IDLE', 'phases': {
                'p': {'priority': 3, 'run': 1}, 'q': {'policy': 'SCHED_RR', 'util_min': 100, 'run': 2},
                'r': {'util_max': 200, 'run': 3}}}}",
        expect![[r#"
            program "a, first thread"
              own-name
              zero
              barrier threads_barrier
              sched fifo priority=10
              loop forever
                run 1us
              end
            program b
              own-name
              barrier threads_barrier
              sched other nice=-5 slice=3ms
              loop forever
                run 1us
              end
            program c
              own-name
              barrier threads_barrier
              sched deadline runtime=2ms deadline=9ms period=9ms
              loop forever
                run 1us
              end
            program d
              own-name
              barrier threads_barrier
              sched deadline runtime=2ms deadline=5ms period=9ms
              loop forever
                run 1us
              end
            program e
              own-name
              barrier threads_barrier
              sched idle nice=0
              loop forever
                sched idle nice=3
                run 1us
                sched rr priority=10 util_min=100
                run 2us
                sched rr priority=10 util_min=100 util_max=200
                run 3us
              end
        "#]],
    );
}

#[test]
fn affinity_falls_back_to_the_task_and_then_to_all() {
    check_programs(
        "'tasks': {
            'a': {'cpus': [2, 0], 'phases': {'p': {'cpus': [1], 'run': 1}, 'q': {'run': 2}}},
            'b': {'phases': {'p': {'cpus': [1], 'run': 1}, 'q': {'run': 2}}},
            'c': {'cpus': '0-3', 'run': 1}}",
        expect![[r#"
            program "a, first thread"
              own-name
              zero
              barrier threads_barrier
              loop forever
                cpus 1
                run 1us
                cpus 0,2
                run 2us
              end
            program b
              own-name
              barrier threads_barrier
              loop forever
                cpus 1
                run 1us
                cpus all
                run 2us
              end
            program c
              own-name
              barrier threads_barrier
              cpus 0-3
              loop forever
                run 1us
              end
        "#]],
    );
}

#[test]
fn task_groups_are_made_on_demand_and_kept_by_later_phases() {
    check(
        "'tasks': {
            'a': {'phases': {'p': {'taskgroup': '/x/y', 'run': 1}, 'q': {'run': 2}, 'r': {'taskgroup': '/', 'run': 3}}},
            'b': {'taskgroup': {'path': '/x', 'cpu.max': '50000 100000', 'cpu.weight': 200}, 'run': 1}}",
        expect![[r#"
            f: 3 tasks, 1 of them from the start
            barrier threads_barrier for 2, spinning 0
            group /x: shares 2048, 50ms in 100ms
            group /x/y: shares 1024
            tasks
                 0 a-0, forked, thread of process 0: program "a, first thread"
                 1 b-1, forked, thread of process 0: program b
                 2 rt-app, from the start, thread of process 0: program main
            program "a, first thread"
              own-name
              zero
              barrier threads_barrier
              loop forever
                group /x/y
                run 1us
                run 2us
                group /
                run 3us
              end
            program b
              own-name
              barrier threads_barrier
              group /x
              loop forever
                run 1us
              end
        "#]],
    );
}

#[test]
fn forks_make_threads_until_the_tool_gives_up() {
    check(
        "'tasks': {'a': {'loop': 1, 'run': 1, 'fork': 'b'}, 'b': {'instance': 0, 'loop': 1, 'run': 2}}",
        expect![[r#"
            f: 3 tasks, 1 of them from the start
            barrier threads_barrier for 1, spinning 0
            word "forks of b" = 0
            tasks
                 0 a-0, forked, thread of process 0: program "a, first thread"
                 1 b, forked, thread of process 0, numbered: program b
                 2 rt-app, from the start, thread of process 0: program main
            program "a, first thread"
              own-name
              zero
              barrier threads_barrier
              run 1us
              jump-if "forks of b" < 1024 L6
              exit-group
              label L6
              add "forks of b" 1
              fork b
            program b
              own-name
              sched other nice=0
              run 2us
        "#]],
    );
}

#[test]
fn memory_is_a_buffer_per_task_or_a_shared_one() {
    check(
        "'global': {'mem_buffer_size': 1000}, 'tasks': {'a': {
            'mem': 5000, 'iorun': 2500,
            'memrun': {'type': 'chase', 'size': 4096, 'count': 10, 'ref': 'shared'},
            'memrun1': {'type': 'read', 'size': 4096, 'count': 10, 'pattern': 'sequential', 'ref': 'shared'}}}",
        expect![[r#"
            f: 2 tasks, 1 of them from the start
            barrier threads_barrier for 1, spinning 0
            region "mem of a" of 1000 bytes
            region shared of 4096 bytes
            tasks
                 0 a-0, forked, thread of process 0: program "a, first thread"
                 1 rt-app, from the start, thread of process 0: program main
            program "a, first thread"
              own-name
              zero
              barrier threads_barrier
              loop forever
                access "mem of a" sequential read=0 write=5000 stride=64
                run-kernel 600ns
                access shared chase read=640 write=0 stride=64
                access shared sequential read=10 write=0 stride=64
              end
        "#]],
    );
}

#[test]
fn markers_carry_the_counters_of_their_loops() {
    check_programs(
        "'global': {'ftrace': 'main,task,loop,event'}, 'tasks': {'a': {'phases': {'p': {'loop': 2, 'run_x': 1, 'lock': 'm', 'unlock': 'm'}}}}",
        expect![[r#"
            program "a, first thread"
              own-name
              zero
              mark "rtapp_main: event=clock_ref data={us}"
              barrier threads_barrier
              mark "rtapp_task: event=start"
              loop forever
                loop 2
                  mark "rtapp_loop: event=start thread_loop={0} phase=0 phase_loop={1}"
                  mark "rtapp_event: id=0 type=6 desc=run_x"
                  run 1us
                  mark "rtapp_event: id=1 type=8 desc=lock:m"
                  lock m
                  mark "rtapp_event: id=2 type=9 desc=unlock:m"
                  unlock m
                  mark "rtapp_loop: event=end thread_loop={0} phase=0 phase_loop={1}"
                end
              end
              mark "rtapp_task: event=end"
        "#]],
    );
}

#[test]
fn a_calibration_in_nanoseconds_makes_whole_loops() {
    check_programs(
        "'global': {'calibration': 300}, 'tasks': {'a': {'run': 1, 'runtime': 50}}",
        expect![[r#"
            program "a, first thread"
              own-name
              zero
              barrier threads_barrier
              loop forever
                run 900ns
                run-wall 50us block=31800ns
              end
        "#]],
    );
    let read = parse("'tasks': {'a': {'run': 1}}").unwrap();
    assert_eq!(read.workload.calibrated_on, Some(schedlab_topology::CpuId(0)));
}

#[test]
fn what_changes_nothing_is_noted() {
    check(
        "'global': {'logdir': './', 'ftrace': true, 'pi_enabled': true}, 'tasks': {'irq_gen_0': {'cpus': [3], 'run': 20, 'sleep': 180}, 'a': {'uid': 7, 'period': 3, 'lock': 'm', 'unlock': 'm', 'kthread': true}}",
        expect![[r#"
            f: 2 tasks, 2 of them from the start
            mutex m, with priority inheritance
            barrier threads_barrier for 1, spinning 0
            interrupt irq_gen_0 on CPU 3 every 200us: 0 hard, 20us soft
            tasks
                 0 a-0, from the start, kernel thread: program "a, first thread"
                 1 rt-app, from the start, thread of process 0: program main
            program "a, first thread"
              own-name
              zero
              mark "rtapp_main: event=clock_ref data={us}"
              barrier threads_barrier
              mark "rtapp_task: event=start"
              loop forever
                mark "rtapp_loop: event=start thread_loop={0} phase=0 phase_loop=0"
                mark "rtapp_event: id=0 type=8 desc=lock:m"
                lock m
                mark "rtapp_event: id=1 type=9 desc=unlock:m"
                unlock m
                mark "rtapp_loop: event=end thread_loop={0} phase=0 phase_loop=0"
              end
              mark "rtapp_task: event=end"
            note: f.json:1: "logdir" has no effect: rt-app's own log files are not written
            note: f.json:1: "ftrace": no "stats" markers are written
            note: f.json:1: "uid" has no effect: the scheduler does not look at it
            note: f.json:1: "period" has no effect: only SCHED_DEADLINE uses it
            note: f.json:1: "irq_gen_0" is taken for softirqs of 20us every 200us on CPU 3, not for a task
        "#]],
    );
}

/// Keys of a task `a`, each line refused.
const REFUSED: &[&str] = &[
    "'exec': 5, 'period': 9",
    "'nodes_membind': [0], 'run': 1",
    "'parent': 'b', 'run': 1",
    "'run': 1, 'dl-reclaim': true",
    "'run': 1, 'colour': 'red'",
    "'run': 1, 'phases': {'p': {'run': 1}}",
    "'phases': {'p': {'instance': 3, 'run': 1}}",
    "'run': 1.5",
    "'run': -2",
    "'sleep': false",
    "'loop': 3",
    "'loop': 3, 'loop': 4, 'run': 1",
    "'run': 1, 'cpus': []",
    "'run': 1, 'cpus': [5000]",
    "'run': 1, 'policy': 'SCHED_EXT'",
    "'run': 1, 'priority': 40",
    "'run': 1, 'policy': 'SCHED_DEADLINE'",
    "'run': 1, 'policy': 'SCHED_FIFO', 'taskgroup': '/a'",
    "'run': 1, 'taskgroup': 'a'",
    "'fork': 'b'",
    "'fork': 'a', 'barrier': 'x'",
    "'lock': 'm', 'run': 1",
    "'wait': {'ref': 'c', 'mutex': 'm'}",
    "'timer': {'ref': 't', 'perod': 5}",
    "'instance': 0, 'run': 1",
    "'run': 1, 'thread_of': 'b'",
    "'memrun': {'type': 'read', 'size': 1}",
];

#[test]
fn what_is_not_simulated_is_refused_by_name() {
    let mut seen = String::new();
    for task in REFUSED {
        let error = parse(&format!("'tasks': {{'a': {{{task}}}}}")).unwrap_err();
        seen += &format!("{task}\n  {error}\n");
    }
    expect![[r#"
        'exec': 5, 'period': 9
          f.json:1:18: "exec" is not modelled: it belongs to the grammar before rt-app 1.0; describe the task by events
        'nodes_membind': [0], 'run': 1
          f.json:1:18: "nodes_membind" is not modelled: memory lies where it is first touched; bind the task with "cpus" instead
        'parent': 'b', 'run': 1
          f.json:1:18: "parent" is not modelled: every thread is made by the main thread; use a "fork" event in the parent
        'run': 1, 'dl-reclaim': true
          f.json:1:28: "dl-reclaim" is not modelled: deadline bandwidth is not reclaimed here
        'run': 1, 'colour': 'red'
          f.json:1:28: unknown key "colour" in task "a"; known keys are "instance", "delay", "phases", "runtime", "period", "deadline", "thread_of", "uid", "gid", "kthread", "loop", "cpus", "taskgroup", "policy", "priority", "dl-runtime", "dl-deadline", "dl-period", "util_min", "util_max"
        'run': 1, 'phases': {'p': {'run': 1}}
          f.json:1:18: "run" is not modelled: rt-app ignores events beside "phases"; move it into a phase
        'phases': {'p': {'instance': 3, 'run': 1}}
          f.json:1:35: unknown key "instance" in phase "p" of task "a"; known keys are "loop", "cpus", "taskgroup", "policy", "priority", "dl-runtime", "dl-deadline", "dl-period", "util_min", "util_max"
        'run': 1.5
          f.json:1:25: "run": an integer is expected, not a fraction
        'run': -2
          f.json:1:25: "run": -2 is outside -1 to 2147483647
        'sleep': false
          f.json:1:27: "sleep": an integer is expected, not a boolean
        'loop': 3
          f.json:1:17: "events": there are none in task "a"
        'loop': 3, 'loop': 4, 'run': 1
          f.json:1:29: "loop": stands twice here
        'run': 1, 'cpus': []
          f.json:1:36: "cpus": the list is empty, so the task could run nowhere
        'run': 1, 'cpus': [5000]
          f.json:1:36: "cpus": 5000 is not a CPU; they go from 0 to 4095
        'run': 1, 'policy': 'SCHED_EXT'
          f.json:1:38: "policy": "SCHED_EXT" is not one of SCHED_OTHER, SCHED_BATCH, SCHED_IDLE, SCHED_FIFO, SCHED_RR, SCHED_DEADLINE
        'run': 1, 'priority': 40
          f.json:1:28: "priority": 40 is outside -20 to 19 for this policy
        'run': 1, 'policy': 'SCHED_DEADLINE'
          f.json:1:28: "dl-runtime": SCHED_DEADLINE needs a runtime, in microseconds
        'run': 1, 'policy': 'SCHED_FIFO', 'taskgroup': '/a'
          f.json:1:52: "taskgroup": only threads of SCHED_OTHER, SCHED_BATCH and SCHED_IDLE can be in a task group
        'run': 1, 'taskgroup': 'a'
          f.json:1:41: "taskgroup": "a" must begin with /
        'fork': 'b'
          f.json:1:18: "fork": there is no task "b"
        'fork': 'a', 'barrier': 'x'
          f.json:1:31: "barrier": task "a" is forked, and a forked thread has no place in a barrier
        'lock': 'm', 'run': 1
          f.json:1:31: mutex "m" is still held at the next iteration of the loop
        'wait': {'ref': 'c', 'mutex': 'm'}
          f.json:1:18: mutex "m" is used as if held, but this task does not hold it here
        'timer': {'ref': 't', 'perod': 5}
          f.json:1:40: unknown key "perod" in "timer"; known keys are "ref", "period", "mode"
        'instance': 0, 'run': 1
          f.json:1:12: "instance": every task has 0 instances, so nothing starts
        'run': 1, 'thread_of': 'b'
          f.json:1:41: "thread_of": there is no task "b"
        'memrun': {'type': 'read', 'size': 1}
          f.json:1:18: "memrun": "count" is missing
    "#]].assert_eq(&seen);
}

/// When each round of a file's first thread begins, in microseconds, by the wall
/// of a machine with enough CPUs.
fn rounds(keys: &str, thread: &str) -> Vec<u64> {
    // Upstream's spelling for none.
    assert!(parse(&format!("'global': {{'ftrace': 'none', 'duration': 1}}, {keys}")).is_ok());
    let read = parse(&format!("'global': {{'ftrace': 'loop', 'duration': 1}}, {keys}")).unwrap();
    let rehearsal = crate::rehearsal::rehearse(&read.workload, schedlab_units::Duration::millis(120));
    let begins = rehearsal.marks.iter().filter(|(_, text)| text.contains("start") && text.contains(thread));
    begins.map(|(at, _)| at.0.div_euclid(1_000)).collect()
}

/// The first execution is 10 of 20 ms, the second overruns, the third is as the first.
fn overrun(mode: &str) -> Vec<u64> {
    let timer = format!("'timer': {{'ref': 'unique', 'period': 20000, 'mode': '{mode}'}}");
    let phase = |run| format!("{{'run': {run}, {timer}}}");
    let phases =
        format!("'p': {}, 'q': {}, 'r': {}, 's': {{'run': 1}}", phase(10_000), phase(25_000), phase(10_000));
    rounds(&format!("'tasks': {{'a': {{'loop': 1, 'phases': {{{phases}}}}}}}"), "thread_loop=0")
}

#[test]
fn a_missed_timer_starts_anew_or_keeps_its_grid() {
    // Missed at 45: 45 is the new base, or 40 stays and 60 comes next.
    assert_eq!(overrun("relative"), [0, 20_000, 45_000, 65_000]);
    assert_eq!(overrun("absolute"), [0, 20_000, 45_000, 60_000]);
}

#[test]
fn threads_drive_each_other_in_turn_through_barriers() {
    let tasks = "'tasks': {
        'a': {'runtime1': 1000, 'sleep1': 2000, 'barrier1': 'x', 'runtime2': 2000, 'barrier2': 'y'},
        'b': {'runtime1': 2000, 'barrier1': 'x', 'runtime2': 1000, 'sleep2': 2000, 'barrier2': 'y'}}";
    // Both meet after 3 ms (a slept), then after 3 more (b slept).
    let both = rounds(tasks, "phase=0");
    assert_eq!(both[..6], [0, 0, 6_000, 6_000, 12_000, 12_000]);
}
