//! A CPU that is on its way to the idle task.

use schedlab_sched::{Kernel, Sched, Took};
use schedlab_topology::{CpuId, Topology};
use schedlab_units::Time;

#[test]
fn who_looks_for_an_idle_cpu_passes_it_over_until_it_is_there() {
    let topology = Topology::regular("2").unwrap();
    let mut sched = Sched::new(&topology, &Kernel::parse("v6.12").unwrap(), Took::default(), 1);
    let cpu = CpuId(1);
    sched.rqs[cpu].idle_from = Time(500);
    for (now, available) in [(499, false), (500, true)] {
        sched.seen_at = Time(now);
        assert_eq!((sched.idle_cpu(cpu), sched.available_idle_cpu(cpu)), (true, available), "at {now}");
    }
}
