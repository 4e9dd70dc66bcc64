//! Time by the wall and time of a processor: programs that look at the clock, and CPUs
//! that share one processor as in an emulator.

use schedlab_machine::Machine;
use schedlab_sched::Kernel;
use schedlab_sim::Simulation;
use schedlab_topology::CpuId;
use schedlab_trace::{Event, Kind, NullSink, Sink};
use schedlab_units::Duration;
use schedlab_workload::{Completion, DeviceSpec, Dist, ProgramBuilder, TaskSpec, WorkloadBuilder};

/// Virtual time, in tenths of a ms, until `tasks` tasks of one program have ended.
fn elapsed(machine: &Machine, tasks: usize, program: impl Fn(&mut ProgramBuilder)) -> u64 {
    let mut w = WorkloadBuilder::new("test");
    let program = w.program("t", |p| program(p));
    for i in 0..tasks {
        w.task(TaskSpec::root(format!("t{i}"), program));
    }
    let workload = w.finish().unwrap();
    let kernel = Kernel::parse("v6.12").unwrap();
    let outcome = Simulation::new(machine, &kernel, &workload).unwrap().run(&mut NullSink);
    assert!(outcome.is_ok());
    (outcome.elapsed().0 + 50_000) / 100_000
}

#[test]
fn a_program_that_looks_at_the_clock_ends_by_it_however_little_it_ran() {
    let machine = Machine::preset("1").unwrap();
    let wall = |p: &mut ProgramBuilder| _ = p.run_wall(Duration::millis(100), Duration::micros(5));
    for tasks in [1, 2, 4] {
        let tenths = elapsed(&machine, tasks, wall);
        // The last to come has its 100 ms from its first look on, which a slice or two precede.
        assert!((1000..1150).contains(&tenths), "{tasks} tasks: {tenths}");
    }
}

#[test]
fn cpus_of_an_emulator_share_one_processor() {
    let mut machine = Machine::preset("4").unwrap();
    let work = |p: &mut ProgramBuilder| _ = p.run(Duration::millis(10));
    let alone = elapsed(&machine, 1, work);
    assert!((100..105).contains(&elapsed(&machine, 4, work)));
    machine.shared_clock = true;
    assert_eq!(elapsed(&machine, 1, work), alone);
    let four = elapsed(&machine, 4, work);
    assert!((400..415).contains(&four), "{four}");
}

#[test]
fn a_task_that_spins_at_a_barrier_gives_the_shared_processor_away() {
    let mut machine = Machine::preset("4").unwrap();
    machine.shared_clock = true;
    let mut w = WorkloadBuilder::new("test");
    let meet = w.barrier("meet", 4, Duration::millis(100));
    for ms in [1, 1, 1, 11] {
        let program = w.program("t", |p| _ = p.run(Duration::millis(ms)).barrier(meet));
        w.task(TaskSpec::root("t", program));
    }
    let workload = w.finish().unwrap();
    let kernel = Kernel::parse("v6.12").unwrap();
    let outcome = Simulation::new(&machine, &kernel, &workload).unwrap().run(&mut NullSink);
    // 14 ms of work in all, and nothing for the spinning.
    assert!((14_000_000..14_400_000).contains(&outcome.elapsed().0), "{}", outcome.elapsed());
}

/// The CPUs of marks, in order.
#[derive(Default)]
struct Marks(Vec<CpuId>);

impl Sink for Marks {
    fn event(&mut self, event: &Event) {
        if let Kind::Mark { .. } = event.kind {
            self.0.push(event.cpu);
        }
    }
}

#[test]
fn the_thread_that_has_the_turn_runs_alone_and_the_others_stand_still() {
    let mut machine = Machine::preset("4").unwrap();
    let changes = |machine: &Machine| {
        let mut w = WorkloadBuilder::new("test");
        let label = w.label("here");
        let program = w.program("t", |p| {
            p.run(Duration::millis(1));
            p.repeat(100, |p| _ = p.run(Duration::micros(10)).mark(label, 0));
        });
        for i in 0..4 {
            w.task(TaskSpec::root(format!("t{i}"), program));
        }
        let workload = w.finish().unwrap();
        let kernel = Kernel::parse("v6.12").unwrap();
        let mut marks = Marks::default();
        let outcome = Simulation::new(machine, &kernel, &workload).unwrap().run(&mut marks);
        assert!(outcome.is_ok());
        assert_eq!(marks.0.len(), 400);
        marks.0.windows(2).filter(|pair| pair[0] != pair[1]).count()
    };
    let side_by_side = changes(&machine);
    assert!(side_by_side > 250, "{side_by_side}");
    machine.shared_clock = true;
    let in_turns = changes(&machine);
    assert!(in_turns < 100, "{in_turns}");
}

/// How often readers of a disk of the host slept, 50 reads each, and how long all took.
fn sleeps(readers: usize, host: Duration) -> (u64, Duration) {
    let mut machine = Machine::preset("4").unwrap();
    machine.shared_clock = true;
    let mut w = WorkloadBuilder::new("test");
    let service = w.dist(Dist::Constant(host));
    let disk = DeviceSpec { name: "disk".into(), service, depth: 8, completion: Completion::IrqSubmitter };
    let disk = w.device(disk);
    let program = w.program("t", |p| {
        p.repeat(50, |p| _ = p.block_read(disk, 4096).run(Duration::micros(15)));
    });
    for i in 0..readers {
        w.task(TaskSpec::root(format!("t{i}"), program));
    }
    let workload = w.finish().unwrap();
    let kernel = Kernel::parse("v6.12").unwrap();
    let outcome = Simulation::new(&machine, &kernel, &workload).unwrap().run(&mut NullSink);
    assert!(outcome.is_ok());
    // Each ends once.
    (outcome.counts.voluntary - readers as u64, outcome.elapsed())
}

#[test]
fn a_disk_of_the_host_is_done_before_its_reader_sleeps_or_when_time_goes_on_to_a_timer() {
    let (none, short) = sleeps(1, Duration(1));
    assert!(none == 0 && short < Duration::millis(3), "{none} in {short}");
    // Nothing else executes while the host works: time advances to the next timer at once, some ms ahead.
    let (all, long) = sleeps(1, Duration::micros(50));
    assert!(all == 50 && long > Duration::millis(50), "{all} in {long}");
    // The others execute meanwhile.
    let (some, _) = sleeps(4, Duration::micros(50));
    assert!((20..150).contains(&some), "{some}");
}
