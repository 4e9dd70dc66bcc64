//! Each model in a small size, rehearsed and described.

use expect_test::{Expect, expect};
use schedlab_units::Duration;

use super::*;
use crate::rehearsal::{Rehearsal, rehearse};

const MINUTE: Duration = Duration::secs(60);

/// A model set by name, as scenario files do.
fn model(name: &str, params: &[(&str, ParamValue)]) -> Model {
    let mut model = Model::named(name).unwrap();
    for (name, value) in params {
        model.set(name, value).unwrap_or_else(|| panic!("no parameter {name}")).unwrap();
    }
    model
}

fn rehearsed(model: &Model) -> Rehearsal {
    let rehearsal = rehearse(&model.workload().unwrap(), MINUTE);
    assert_eq!(rehearsal.stuck, Vec::<String>::new(), "{}", model.name());
    rehearsal
}

fn int(n: i64) -> ParamValue {
    ParamValue::Int(n)
}

fn text(text: &str) -> ParamValue {
    ParamValue::Text(text.to_string())
}

/// The number of an op in a rehearsal.
fn count(rehearsal: &Rehearsal, op: &str) -> u64 {
    rehearsal.ops.get(op).copied().unwrap_or(0)
}

fn check_described(model: &Model, expected: Expect) {
    expected.assert_eq(&model.workload().unwrap().describe());
}

#[test]
fn every_model_with_its_defaults_comes_to_an_end() {
    let mut seen = String::new();
    for name in Model::NAMES {
        let mut model = Model::named(name).unwrap();
        // The full size is for release builds.
        for (key, small) in [
            ("loops", 20),
            ("rounds", 10),
            ("reads", 10),
            ("phases", 5),
            ("files", 3),
            ("users", 8),
            ("clients", 8),
            ("elements", 1 << 20),
        ] {
            if model.params().iter().any(|param| param.name == key) {
                model.set(key, &int(small)).unwrap().unwrap();
            }
        }
        let rehearsal = rehearse(&model.workload().unwrap(), Duration::secs(3));
        assert_eq!(rehearsal.stuck, Vec::<String>::new(), "{name}");
        let tasks: u32 = rehearsal.tasks.values().sum();
        seen +=
            &format!("{name}: {tasks} tasks, {} marks, ends at {}\n", rehearsal.marks.len(), rehearsal.end);
    }
    expect![[r#"
        barrier: 8 tasks, 10 marks, ends at 0.001200025
        batch: 8 tasks, 2 marks, ends at 0.113080404
        copies: 2 tasks, 25623 marks, ends at 0.550014384
        dbench: 9 tasks, 55 marks, ends at 0.073680038
        events: 9 tasks, 2513 marks, ends at 0.220500000
        fork-storm: 321 tasks, 2 marks, ends at 0.000900330
        hackbench: 401 tasks, 2 marks, ends at 0.000043220
        hogs: 13 tasks, 0 marks, ends at 1.000000014
        io: 5 tasks, 2 marks, ends at 0.000950015
        kernbench: 10 tasks, 2 marks, ends at 1.734800110
        oltp: 17 tasks, 6505 marks, ends at 2.000499756
        netperf: 17 tasks, 71401 marks, ends at 0.050000652
        periodic: 2 tasks, 20 marks, ends at 0.025002001
        ping: 1 tasks, 0 marks, ends at 3.000000147
        pipes: 41 tasks, 2 marks, ends at 0.000005436
        schbench: 10 tasks, 7545 marks, ends at 0.550200323
        sleepers: 19 tasks, 0 marks, ends at 0.400001619
        spawn: 11002 tasks, 11000 marks, ends at 0.220000001
        spinners: 9 tasks, 0 marks, ends at 0.200000009
        stream: 8 tasks, 80 marks, ends at 0.110193575
        sysbench: 17 tasks, 19585 marks, ends at 2.000110793
        tbench: 17 tasks, 65529 marks, ends at 0.050001366
        token: 3 tasks, 148515 marks, ends at 0.030000029
    "#]]
    .assert_eq(&seen);
}

#[test]
fn every_parameter_can_be_set_to_what_it_shows() {
    for name in Model::NAMES {
        let mut model = Model::named(name).unwrap();
        for param in model.clone().params() {
            let value =
                param.value.parse().map(ParamValue::Int).or(param.value.parse().map(ParamValue::Bool));
            let value = value.unwrap_or(ParamValue::Text(param.value.clone()));
            model
                .set(param.name, &value)
                .unwrap()
                .unwrap_or_else(|why| panic!("{name}.{}: {why}", param.name));
            assert!(
                !param.about.is_empty() && param.about.ends_with('.'),
                "{name}.{}: {}",
                param.name,
                param.about
            );
        }
        assert_eq!(model, Model::named(name).unwrap());
    }
}

#[test]
fn hackbench_moves_every_message_once() {
    for kind in ["process", "thread"] {
        for transport in ["pipe", "socket"] {
            let params = [
                ("groups", int(3)),
                ("pairs", int(4)),
                ("loops", int(50)),
                ("kind", text(kind)),
                ("transport", text(transport)),
            ];
            let rehearsal = rehearsed(&model("hackbench", &params));
            // Each of 3 x 4 senders writes 50 messages to each of 4 receivers; 24 say they are ready.
            assert_eq!(count(&rehearsal, "write"), 3 * 4 * 50 * 4 + 24);
            assert_eq!(count(&rehearsal, "read"), 3 * 4 * 50 * 4 + 24);
            assert_eq!(rehearsal.tasks["hackbench"], 1 + 3 * 8);
            assert_eq!(rehearsal.marks.len(), 2);
        }
    }
}

#[test]
fn stream_threads_are_created_one_by_one_and_touch_their_own_slice() {
    let model = model(
        "stream",
        &[("threads", int(3)), ("elements", int(1000)), ("ntimes", int(2)), ("cpus", text("0,16,32"))],
    );
    check_described(
        &model,
        expect![[r#"
            stream: 3 tasks, 1 of them from the start
            barrier threads_dock for 3, spinning 14ms
            barrier team for 3, spinning 14ms
            region "slice 0" of 8016 bytes
            region "slice 1" of 7992 bytes
            region "slice 2" of 7992 bytes
            tasks
                 0 stream, forked, thread of process 0, memory bound: program "stream thread 1"
                 1 stream, forked, thread of process 0, memory bound: program "stream thread 2"
                 2 stream, from the start, thread of process 0, cpus 0,16,32, memory bound: program stream
            program "stream thread 1"
              barrier threads_dock
              run 1us
              barrier team
              barrier threads_dock
              run 1us
              barrier team
              barrier threads_dock
              touch "slice 1" 7992
              barrier team
              barrier threads_dock
              access "slice 1" sequential read=2664 write=2664 stride=64
              barrier team
              loop 2
                barrier threads_dock
                access "slice 1" sequential read=2664 write=2664 stride=64
                barrier team
                barrier threads_dock
                access "slice 1" sequential read=2664 write=2664 stride=64
                barrier team
                barrier threads_dock
                access "slice 1" sequential read=5328 write=2664 stride=64
                barrier team
                barrier threads_dock
                access "slice 1" sequential read=5328 write=2664 stride=64
                barrier team
              end
              barrier threads_dock
            program "stream thread 2"
              barrier threads_dock
              run 1us
              barrier team
              barrier threads_dock
              run 1us
              barrier team
              barrier threads_dock
              touch "slice 2" 7992
              barrier team
              barrier threads_dock
              access "slice 2" sequential read=2664 write=2664 stride=64
              barrier team
              loop 2
                barrier threads_dock
                access "slice 2" sequential read=2664 write=2664 stride=64
                barrier team
                barrier threads_dock
                access "slice 2" sequential read=2664 write=2664 stride=64
                barrier team
                barrier threads_dock
                access "slice 2" sequential read=5328 write=2664 stride=64
                barrier team
                barrier threads_dock
                access "slice 2" sequential read=5328 write=2664 stride=64
                barrier team
              end
              barrier threads_dock
            program stream
              run uniform(1us,25us)
              fork stream
              run uniform(1us,25us)
              fork stream
              barrier threads_dock
              run 1us
              barrier team
              barrier threads_dock
              run 1us
              barrier team
              barrier threads_dock
              touch "slice 0" 8016
              barrier team
              barrier threads_dock
              access "slice 0" sequential read=2672 write=2672 stride=64
              barrier team
              loop 2
                mark "copy begin"
                barrier threads_dock
                access "slice 0" sequential read=2672 write=2672 stride=64
                barrier team
                mark "copy end"
                mark "scale begin"
                barrier threads_dock
                access "slice 0" sequential read=2672 write=2672 stride=64
                barrier team
                mark "scale end"
                mark "add begin"
                barrier threads_dock
                access "slice 0" sequential read=5344 write=2672 stride=64
                barrier team
                mark "add end"
                mark "triad begin"
                barrier threads_dock
                access "slice 0" sequential read=5344 write=2672 stride=64
                barrier team
                mark "triad end"
              end
              exit-group
            measure copy in MB/s, higher is better: 16000 by the shortest "copy begin" to "copy end", without the first 1
            measure scale in MB/s, higher is better: 16000 by the shortest "scale begin" to "scale end", without the first 1
            measure add in MB/s, higher is better: 24000 by the shortest "add begin" to "add end", without the first 1
            measure triad in MB/s, higher is better: 24000 by the shortest "triad begin" to "triad end", without the first 1
        "#]],
    );
    let rehearsal = rehearsed(&model);
    assert_eq!(rehearsal.tasks["stream"], 3);
    assert_eq!(rehearsal.marks.len(), 2 * 4 * 2);
}

#[test]
fn a_barrier_lets_no_thread_run_ahead() {
    let model = model("barrier", &[("threads", int(4)), ("rounds", int(10)), ("work", text("1ms"))]);
    let rehearsal = rehearsed(&model);
    assert_eq!(count(&rehearsal, "barrier"), 40);
    // The first thread does twice the work, so a round takes 2 ms.
    assert_eq!(rehearsal.end.0 / 1_000_000, 20);
}

#[test]
fn sleepers_wake_and_stop() {
    let model = model("sleepers", &[("messengers", int(2)), ("workers", int(3)), ("wall", text("50ms"))]);
    let rehearsal = rehearsed(&model);
    assert_eq!(rehearsal.tasks.values().sum::<u32>(), 1 + 2 + 6);
    assert!(count(&rehearsal, "run") > 100, "{:?}", rehearsal.ops);
    assert!(rehearsal.end.0 < 60_000_000);
    check_described(
        &super::Model::Sleepers(Sleepers { messengers: 1, workers: 1, ..Sleepers::default() }),
        expect![[r#"
            sleepers: 3 tasks, 1 of them from the start
            word stop = 0
            word "count 0" = 0
            word "woken 0" = 1
            tasks
                 0 sl-w0, forked, thread of process 0: program sl-w0
                 1 sl-m0, forked, thread of process 0: program sl-m0
                 2 sl-main, from the start, thread of process 0: program sl-main
            program sl-w0
              own-name
              label L1
              jump-if stop != 0 L39
              set "woken 0" 0
              add "count 0" 1
              futex-wake "count 0" 1
              label L5
              jump-if stop != 0 L39
              jump-if "woken 0" != 0 L9
              futex-wait "woken 0" 0
              jump L5
              label L9
              run 60us
              jump-if stop != 0 L39
              set "woken 0" 0
              add "count 0" 1
              futex-wake "count 0" 1
              label L14
              jump-if stop != 0 L39
              jump-if "woken 0" != 0 L18
              futex-wait "woken 0" 0
              jump L14
              label L18
              run 60us
              jump-if stop != 0 L39
              set "woken 0" 0
              add "count 0" 1
              futex-wake "count 0" 1
              label L23
              jump-if stop != 0 L39
              jump-if "woken 0" != 0 L27
              futex-wait "woken 0" 0
              jump L23
              label L27
              run 60us
              jump-if stop != 0 L39
              set "woken 0" 0
              add "count 0" 1
              futex-wake "count 0" 1
              label L32
              jump-if stop != 0 L39
              jump-if "woken 0" != 0 L36
              futex-wait "woken 0" 0
              jump L32
              label L36
              run 60us
              sleep 500us
              jump L1
              label L39
            program sl-m0
              own-name
              label L1
              jump-if stop != 0 L8
              load "count 0"
              jump-if "woken 0" != 0 L6
              set "woken 0" 1
              futex-wake "woken 0" 1
              label L6
              futex-wait "count 0" remembered timeout=2ms
              jump L1
              label L8
            program sl-main
              fork sl-w0
              fork sl-m0
              sleep 400ms
              set stop 1
              set "woken 0" 1
              futex-wake "woken 0" 99
              add "count 0" 1
              futex-wake "count 0" 99
              join sl-w0
              join sl-m0
        "#]],
    );
}

#[test]
fn fork_storm_makes_a_new_child_each_time() {
    let rehearsal = rehearsed(&model("fork-storm", &[("width", int(3)), ("rounds", int(5))]));
    assert_eq!(rehearsal.tasks["fk-1"], 5);
    assert_eq!(rehearsal.tasks.values().sum::<u32>(), 16);
}

#[test]
fn hogs_take_their_nice_values_in_turn() {
    check_described(
        &model("hogs", &[("hogs", int(3)), ("nice", text("0 5")), ("groups", int(2))]),
        expect![[r#"
            hogs: 4 tasks, 1 of them from the start
            group /hogs0: shares 1024
            group /hogs1: shares 1024
            tasks
                 0 hg-0, forked, group /hogs0: program "hg nice 0"
                 1 hg-1, forked, group /hogs1: program "hg nice 5"
                 2 hg-2, forked, group /hogs0: program "hg nice 0"
                 3 hg-main, from the start: program hg-main
            program "hg nice 0"
              own-name
              sched other nice=0
              run-wall 1s block=6us
            program "hg nice 5"
              own-name
              sched other nice=5
              run-wall 1s block=6us
            program hg-main
              fork hg-0
              fork hg-1
              fork hg-2
              wait-children
        "#]],
    );
}

#[test]
fn readers_wait_for_a_disk_or_for_a_kworker() {
    check_described(
        &model("io", &[("readers", int(2)), ("device", text("loop"))]),
        expect![[r#"
        io: 3 tasks, 1 of them from the start
        device loop0: 1 at once, service 0, completed by a worker of loop0, work 5us, notified by softirq
        workqueue loop0: unbound
        tasks
             0 io-0 .. io-1 (2), forked: program io
             2 io-main, from the start: program io-main
        program io
          own-name
          loop 400
            io-read loop0 4096
            run 15us
          end
        program io-main
          fork io-0
          fork io-1
          mark "io begin"
          wait-children
          mark "io end"
        measure elapsed in s, lower is better: from the first "io begin" to the last "io end"
    "#]],
    );
    let disk = model("io", &[("readers", int(2)), ("reads", int(7))]);
    assert_eq!(count(&rehearsed(&disk), "io-read"), 14);
}

#[test]
fn ping_in_the_background_ends_with_the_rest() {
    let mut w = WorkloadBuilder::new("barrier under ping");
    model("barrier", &[("rounds", int(5))]).add(&mut w);
    model("ping", &[]).add_in_background(&mut w);
    let workload = w.finish().unwrap();
    let rehearsal = rehearse(&workload, MINUTE);
    assert_eq!(rehearsal.stuck, Vec::<String>::new());
    assert!(rehearsal.end.0 < 1_000_000, "{}", rehearsal.end);
    assert!(count(&rehearsal, "take") > 10);
}

#[test]
fn periodic_threads_keep_their_grid() {
    let rehearsal = rehearsed(&model("periodic", &[("threads", int(2)), ("loops", int(10))]));
    // The start within a tick, 5 ms in the mean, ten intervals of the second thread, 1500 us each, and the last waking's work.
    assert_eq!(rehearsal.end.0 / 1_000, 5_000 + 15_002);
}

#[test]
fn wrong_values_and_names_are_reported() {
    let mut hackbench = Model::named("hackbench").unwrap();
    assert_eq!(hackbench.set("colour", &int(1)), None);
    let wrong = |hackbench: &mut Model, key, value| hackbench.set(key, &value).unwrap().unwrap_err();
    assert_eq!(wrong(&mut hackbench, "kind", text("fibre")), "one of \"process\", \"thread\" is expected");
    assert_eq!(wrong(&mut hackbench, "work", int(5)), "a span like \"5ms\" is expected, not 5");
    assert_eq!(Model::named("quake"), None);
}

#[test]
fn dbench_sleeps_twice_a_point_on_xfs_and_once_on_ext4() {
    let params = [("clients", int(2)), ("files", int(3)), ("points", int(4)), ("noise_permille", int(0))];
    let mut dbench = model("dbench", &params);
    let xfs = rehearsed(&dbench);
    // The main process waits for each client.
    assert_eq!((count(&xfs, "take"), count(&xfs, "queue")), (2 * 3 * 4 * 2 + 2, 2 * 3 * 4 * 2));
    // One client has begun its fourth file when the other is done with its third.
    assert_eq!(xfs.marks.len(), 2 * 3 * 2 + 1);
    dbench.set("filesystem", &text("ext4")).unwrap().unwrap();
    let ext4 = rehearsed(&dbench);
    assert_eq!((count(&ext4, "take"), count(&ext4, "io-write")), (2, 2 * 3 * 4));
    check_described(
        &model("dbench", &[("files", int(1)), ("points", int(1))]),
        expect![[r#"
            dbench: 2 tasks, 1 of them from the start
            semaphore "files done" from 0
            semaphore "log pushed for 0" from 0
            semaphore "io done for 0" from 0
            device disk: 1 at once, service stalls(53us,2500us,50), completed by interrupt at the submitter's CPU
            workqueue xfs-cil: unbound
            workqueue kblockd: bound, high priority
            tasks
                 0 dbench, forked, footprint 262144, in the background: program "dbench client 0"
                 1 dbench, from the start: program dbench
            program "log push for 0"
              run-kernel 35us
              post "log pushed for 0"
              io-write disk 4096
            program "io for 0"
              run-kernel 8us
              io-write disk 4096
              run-kernel 6us
              post "io done for 0"
            program "dbench client 0"
              loop 1
                mark "load file begin"
                loop 1
                  run normal(6666666ns,666666ns)
                  queue xfs-cil "log push for 0"
                  take "log pushed for 0"
                  run normal(6666666ns,666666ns)
                  queue kblockd "io for 0"
                  take "io done for 0"
                  run normal(6666666ns,666666ns)
                end
                mark "load file end"
              end
              post "files done"
              loop forever
                mark "load file begin"
                loop 1
                  run normal(6666666ns,666666ns)
                  queue xfs-cil "log push for 0"
                  take "log pushed for 0"
                  run normal(6666666ns,666666ns)
                  queue kblockd "io for 0"
                  take "io done for 0"
                  run normal(6666666ns,666666ns)
                end
                mark "load file end"
              end
            program dbench
              fork dbench
              loop 1
                take "files done"
              end
            measure "load file" in ns, lower is better: each "load file begin" to the next "load file end"
        "#]],
    );
}

#[test]
fn sysbench_clients_and_servers_answer_each_other() {
    let params = [("clients", int(5)), ("instances", int(2)), ("wall", text("20ms"))];
    let rehearsal = rehearsed(&model("sysbench", &params));
    assert_eq!((rehearsal.tasks["postgres"], rehearsal.tasks["sysbench"]), (5, 6));
    // 15 requests a transaction of some 600 us and a flush of 150: about 25 each in 20 ms.
    let transactions = rehearsal.marks.len();
    assert!((80..160).contains(&transactions), "{transactions}");
    let workload = model("sysbench", &params).workload().unwrap();
    let groups: Vec<&str> = workload.groups.iter().map(|group| group.path.as_str()).collect();
    assert_eq!(groups, ["/docker", "/docker/db0", "/docker/db1"]);
}

#[test]
fn oltp_users_are_tasks_or_interrupts() {
    for (remote, tasks) in [(false, 1 + 2 * 4), (true, 1 + 4)] {
        let params = [("users", int(4)), ("wall", text("50ms")), ("remote", ParamValue::Bool(remote))];
        let rehearsal = rehearsed(&model("oltp", &params));
        assert_eq!(rehearsal.tasks.values().sum::<u32>(), tasks);
        // A cycle is some 2.4 ms for a local user; a remote one costs the machine less.
        assert!(rehearsal.marks.len() > 4 * 15, "{}", rehearsal.marks.len());
    }
}

#[test]
fn make_runs_no_more_jobs_than_it_has_tokens() {
    let params = [
        ("jobs", int(3)),
        ("files", int(9)),
        ("work_min", text("10ms")),
        ("work_max", text("10ms")),
        ("kernel_work", int(0)),
        ("assembly", int(0)),
    ];
    let rehearsal = rehearsed(&model("kernbench", &params));
    assert_eq!((rehearsal.tasks["sh"], rehearsal.tasks["cc1"]), (9, 9));
    // Three waves of 10 ms, and the shells one after another.
    assert!((33..45).contains(&(rehearsal.end.0 / 1_000_000)), "{}", rehearsal.end);
}

#[test]
fn an_assembler_reads_what_its_compiler_writes() {
    let params = |assembly: i64| {
        [("jobs", int(2)), ("files", int(3)), ("assembly", int(assembly)), ("work_max", text("300ms"))]
    };
    let rehearsal = rehearsed(&model("kernbench", &params(40_000)));
    assert_eq!((count(&rehearsal, "write"), count(&rehearsal, "read")), (30, 30));
    assert_eq!((rehearsal.tasks["as"], rehearsal.tasks["cc1"]), (3, 3));
    let without = rehearsed(&model("kernbench", &params(0)));
    assert_eq!((count(&without, "write"), without.tasks.get("as")), (0, None));
}

#[test]
fn a_batch_program_meets_after_each_phase() {
    let rehearsal =
        rehearsed(&model("batch", &[("threads", int(3)), ("phases", int(4)), ("memory", text("1K"))]));
    assert_eq!((count(&rehearsal, "barrier"), count(&rehearsal, "touch")), (3 * 5, 3));
    let alone =
        model("batch", &[("threads", int(3)), ("phases", int(4)), ("barrier", ParamValue::Bool(false))]);
    assert_eq!(count(&rehearsed(&alone), "barrier"), 3);
}
