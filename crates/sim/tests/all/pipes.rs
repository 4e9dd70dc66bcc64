//! A writer and a reader of whole pages who share a CPU. They pass the pipe from one to the other sixteen pages at a
//! time, or a page at a time if each wake-up preempts. The task that has run longer makes way, so it matters what
//! each of them is charged for.

use schedlab_machine::Machine;
use schedlab_sched::Kernel;
use schedlab_sim::Simulation;
use schedlab_topology::CpuId;
use schedlab_trace::{Each, Event, Kind};
use schedlab_units::Duration;
use schedlab_workload::{CpuList, TaskSpec, WorkloadBuilder};

/// Switches for a thousand writes, and writes in 200 ms.
fn pages_through(kernel: &str, constants: &[(&str, u64)]) -> (u64, u64) {
    let mut machine = Machine::preset("1").unwrap();
    for &(name, value) in constants {
        machine.set(name, value).unwrap();
    }
    let mut w = WorkloadBuilder::new("pages");
    let (pipe, wrote) = (w.pipe("pipe"), w.label("wrote"));
    let cpus = w.cpus(CpuList::new([CpuId(0)]).unwrap());
    let writer = w.program("writer", |p| {
        p.forever(|p| _ = p.write(pipe, 4_096).mark(wrote, 1));
    });
    let reader = w.program("reader", |p| {
        p.forever(|p| _ = p.read(pipe, 4_096));
    });
    for (name, program) in [("writer", writer), ("reader", reader)] {
        w.task(TaskSpec { cpus: Some(cpus), ..TaskSpec::root(name, program) });
    }
    w.stop_after(Duration::millis(200));
    let workload = w.finish().unwrap();
    let kernel = Kernel::parse(kernel).unwrap();
    let mut writes = 0;
    let mut sink = Each(|event: &Event| writes += u64::from(matches!(event.kind, Kind::Mark { .. })));
    let outcome = Simulation::new(&machine, &kernel, &workload).unwrap().run(&mut sink);
    (1_000 * outcome.counts.switches / writes, writes)
}

#[test]
fn a_delayed_writer_is_woken_for_every_page() {
    let (delayed, fewer) = pages_through("v6.12", &[]);
    let (plain, more) = pages_through("v6.12+NO_DELAY_DEQUEUE", &[]);
    assert!(delayed > 2 * plain && more > fewer, "{delayed} and {plain} switches, {fewer} and {more} writes");
}

#[test]
fn without_pages_to_free_both_cost_the_same_and_pass_sixteen() {
    let free = [("cost.pipe_page_ns", 0), ("cost.pipe_free_page_ns", 0), ("cost.call_spread_permille", 0)];
    let (switches, _) = pages_through("v6.12+NO_DELAY_DEQUEUE", &free);
    assert_eq!(switches, 1_000 * 2 / 16, "two switches for sixteen writes");
}

#[test]
fn a_second_spare_page_saves_time() {
    let (one, two) = (pages_through("v6.10", &[]).1, pages_through("v6.10+TWO_SPARE_PAGES", &[]).1);
    assert!(two > one, "{two} writes with two spare pages, {one} with one");
}

#[test]
fn a_call_that_finds_nothing_costs_less_than_one_that_does() {
    let writes = |permille| pages_through("v6.10", &[("cost.pipe_vain_permille", permille)]).1;
    assert!(writes(260) > writes(1_000));
}
