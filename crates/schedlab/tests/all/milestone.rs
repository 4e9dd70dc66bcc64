//! The first milestone, kept running: a published table's placement, a real rt-app file on a named machine, and the
//! same bytes on any number of threads.

use schedlab::machine::Machine;
use schedlab::sched::Kernel;
use schedlab::topology::Topology;
use schedlab::trace::write::{Ftrace, Precision};
use schedlab::{Experiment, Limits, NoFiles, Scenario, run_one};

const STREAM: &str = include_str!("../../../../scenarios/stream-pinned-numa.toml");
const TUTORIAL: &str = include_str!("../../../workload/tests/rt-app/spreading-tasks.json");

fn stream() -> Scenario {
    Scenario::parse("scenarios/stream-pinned-numa.toml", STREAM, &NoFiles).unwrap()
}

#[test]
fn pinned_stream_threads_go_where_they_went() {
    let results = stream().run(1, |_, _| ()).unwrap();
    for (kernel, runs) in results.runs[0].iter().enumerate() {
        for run in runs {
            let went: Vec<u16> = run.folds.placements.tasks.iter().map(|task| task.to.0).collect();
            if kernel == 0 {
                assert_eq!(went, [32, 48, 0, 16, 16, 16, 16], "seed {}", run.seed);
            } else {
                let mut other_socket = went[3..].to_vec();
                other_socket.sort_unstable();
                assert_eq!(went[..3], [32, 48, 0], "seed {}", run.seed);
                assert_eq!(other_socket, [64, 80, 96, 112], "seed {}: one each", run.seed);
            }
        }
    }
}

#[test]
fn an_example_of_rt_app_runs_on_the_machine_at_hand() {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    // A sandbox without sysfs still has a machine to run on.
    let topology = Topology::from_sysfs("host", &read).or_else(|_| Topology::regular("1x2")).unwrap();
    let scenario = Scenario::from_rt_app("spreading-tasks.json", TUTORIAL, Machine::of(topology)).unwrap();
    let results = scenario.run(1, |_, _| ()).unwrap();
    assert!(results.runs[0][0][0].folds.counts.switches > 100);
}

/// The trace of one run, as text.
fn trace(kernel: &str, seed: u64) -> Vec<u8> {
    let scenario = stream();
    let limits = Limits { seed, ..scenario.limits() };
    let kernel = Kernel::parse(kernel).unwrap();
    let writer = |_: &_| Ftrace::new(Vec::new(), Precision::Nano);
    let (_, writer) = run_one(&scenario.machine, &kernel, &scenario.rows[0], limits, writer).unwrap();
    writer.finish().unwrap()
}

#[test]
fn the_same_scenario_gives_the_same_bytes() {
    for kernel in ["v5.18", "v7.2"] {
        assert!(trace(kernel, 1) == trace(kernel, 1), "{kernel}: two runs differ");
        assert!(trace(kernel, 1) != trace(kernel, 2), "{kernel}: the seed changes nothing");
    }
}

#[test]
fn any_number_of_threads_gives_the_same_results() {
    let scenario = stream();
    let json = |threads| {
        let results = scenario.run(threads, |_, _| ()).unwrap();
        serde_json::to_string(&results.table(&Experiment::of(&scenario))).unwrap()
            + &serde_json::to_string(&results.perf_stats(&Experiment::of(&scenario))).unwrap()
    };
    assert_eq!(json(1), json(3));
}
