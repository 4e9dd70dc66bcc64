//! Detectors on a simulated run: the problem of the published STREAM runs, found by name, and gone with the
//! change that fixed it.

use schedlab::report::detect::{Detect, Finding, Findings, Options};
use schedlab::sched::Kernel;
use schedlab::{NoFiles, Scenario, embedded_scenario, run_one};

/// What a detector finds in the scenario of pinned STREAM threads.
fn stream(kernel: &str, detector: &str) -> Findings {
    let file = "stream-pinned-numa.toml";
    findings(embedded_scenario(file).expect("the scenario is in the tree"), kernel, detector)
}

/// What a detector finds in a scenario.
fn findings(text: &str, kernel: &str, detector: &str) -> Findings {
    let scenario = Scenario::parse("scenario", text, &NoFiles).expect("the scenario is whole");
    let kernel = Kernel::parse(kernel).expect("a kernel");
    let limits = scenario.limits();
    let options = Options { topology: Some(scenario.machine.topology.clone()), ..Options::default() };
    let (_, detect) =
        run_one(&scenario.machine, &kernel, &scenario.rows[0], limits, |_| Detect::new(options))
            .expect("the run ends");
    let found = detect.finish().detectors.into_iter().find(|findings| findings.detector == detector);
    found.expect("there is such a detector")
}

fn avoids(finding: &Finding) -> Vec<&str> {
    finding.avoid.iter().map(|avoid| avoid.switch).collect()
}

#[test]
fn new_threads_pile_up_without_the_affinity_rule() {
    let findings = stream("v5.18", "pile-up");
    let [pile] = &findings.worst[..] else { panic!("one pile: {findings:?}") };
    assert_eq!((pile.count, pile.cpus[0]), (4, 16), "{pile:?}");
    assert_eq!(pile.cpus[1..], [64, 80, 96, 112], "the allowed CPUs of the other socket were idle");
    assert_eq!(pile.rule.as_deref(), Some("STAY_LOCAL at fork"));
    assert!(avoids(pile).contains(&"NUMA_IMB_AFFINITY") && !pile.guessed, "{pile:?}");
    assert_eq!(pile.provided, Vec::<String>::new(), "a simulated trace leaves nothing open");
}

#[test]
fn they_wait_beside_idle_cpus_without_it_and_not_with_it() {
    let without = stream("v5.18", "idle-while-waiting");
    assert!(without.lost_ns > 500_000_000, "{} ns", without.lost_ns);
    let with = "v5.18+NUMA_IMB_AFFINITY";
    assert_eq!(stream(with, "pile-up").count, 0);
    assert_eq!(stream(with, "idle-while-waiting").count, 0);
}

#[test]
fn a_client_walks_round_the_cache_without_kthread_stacking() {
    let dbench = "machine = \"uma-8c\"\nkernels = [\"v5.5\"]\n[workload]\nmodel = \"dbench\"\nclients = 1\n";
    let walks = findings(dbench, "v5.5", "llc-walk");
    let walk = walks.worst.iter().find(|walk| walk.tasks[0].comm == "dbench").expect("the client walks");
    assert_eq!(walk.cpus, (0..8).collect::<Vec<u16>>());
    assert!(walk.tasks[1].comm.starts_with("kworker/"), "{walk:?}");
    assert_eq!(avoids(walk), ["SIS_KTHREAD_STACK"]);
    assert_eq!(findings(dbench, "v5.5+SIS_KTHREAD_STACK", "llc-walk").count, 0);
}

#[test]
fn placement_on_a_cpu_that_interrupts_take_is_found() {
    let ping = "machine = \"xeon-20c\"\nkernels = [\"v4.13\"]\n\
                [workload]\nmodel = \"barrier\"\nthreads = 20\nrounds = 90\nwork = \"1.94ms\"\n\
                [[workload.with]]\nmodel = \"ping\"\n";
    let findings = findings(ping, "v4.13", "stolen-cpu");
    let [flood] = &findings.worst[..] else { panic!("one CPU: {findings:?}") };
    assert_eq!((flood.cpus[0], flood.tasks[0].comm.as_str()), (0, "ping"));
    assert!(flood.count > 50 && avoids(flood) == ["SIS_CAPACITY"], "{flood:?}");
}
