//! Recordings of CPUs with less than full capacity.

use schedlab_topology::Topology;
use schedlab_units::Duration;

use super::learn_knowing;
use crate::Known;

#[test]
fn time_on_a_small_cpu_is_less_work() {
    let machine = Topology::preset_or_regular("4:capacity=0-1/512").unwrap();
    // On a small CPU, then on a large one: preempted in between, so it is one piece of work.
    let learned = learn_knowing(
        Known::default().on(&machine),
        "0 0 a-10 out R+ b-11
         0 100 b-11 out S a-10
         0 300 a-10 out R+ <idle>-0
         2 400 <idle>-0 out R a-10
         2 500 a-10 out S <idle>-0
         2 600 <idle>-0 irq a-10",
    );
    assert_eq!(learned.unwrap().tasks[0].work(), Duration::micros(200 / 2 + 100));
}
