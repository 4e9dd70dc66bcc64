//! The probes as simulated programs: prices that no probe can isolate are chosen so that the simulated probe takes as
//! long.

use schedlab::machine::Machine;
use schedlab::sched::Kernel;
use schedlab::topology::CpuId;
use schedlab::trace::NullSink;
use schedlab::{NoFiles, Scenario, run_one};

use super::probe::By;
use crate::error::Error;

/// Turns of a simulated ping-pong.
const TURNS: u32 = 400;

/// One way of a ping-pong between tasks on two CPUs of a machine, or on one, ns.
pub fn ping_pong(machine: &Machine, kernel: &Kernel, by: By, cpus: [CpuId; 2]) -> Result<f64, Error> {
    let [there, back] = match by {
        By::Pipe => [["write p 4", "read q 4"], ["read p 4", "write q 4"]],
        By::Line | By::Futex => [["post p", "take q"], ["take p", "post q"]],
    };
    let task = |name: &str, cpu: CpuId, ops: [&str; 2], mark: &str| {
        format!(
            "[[workload.task]]\nname = \"{name}\"\nprocess = \"probe\"\ncpus = \"{cpu}\"\nstart_cpu = {cpu}\n\
             program = [\"run 1us\", \"loop {TURNS}\", \"{}\", \"{}\", {mark}\"end\"]\n",
            ops[0], ops[1]
        )
    };
    let text = format!(
        "machine = \"{}\"\nkernels = [\"{}\"]\nlimit = \"10s\"\n[workload]\n{}{}\
         [[workload.measure]]\nname = \"way\"\nrule = \"elapsed\"\nfrom = \"turn\"\nto = \"turn\"\n",
        machine.topology.nr_cpus(),
        kernel.name,
        task("ask", cpus[0], there, "\"mark turn 1\", "),
        task("answer", cpus[1], back, ""),
    );
    let seconds = measured(&text, machine, "way")?;
    Ok(seconds * 1e9 / f64::from(TURNS - 1) / 2.0)
}

/// A measure of the first run of a scenario on a machine.
pub fn measured(text: &str, machine: &Machine, name: &str) -> Result<f64, Error> {
    let mut scenario = Scenario::parse("a probe", text, &NoFiles)?;
    scenario.set_machine(machine.clone())?;
    let row = &scenario.rows[0];
    let (run, _) = run_one(&scenario.machine, &scenario.kernels[0], row, scenario.limits(), |_| NullSink)?;
    let at = row.workload.measures.iter().position(|measure| measure.name == name);
    let value = at.and_then(|at| run.folds.marks[at].value());
    value.ok_or_else(|| Error::new(format!("the simulated probe has no {name}")))
}

/// Where a line through two points of a quantity reaches the measured value, within bounds.
pub fn solve([x0, x1]: [f64; 2], [y0, y1]: [f64; 2], wanted: f64, bounds: [f64; 2]) -> f64 {
    if y1 == y0 {
        return x0;
    }
    (x0 + (wanted - y0) * (x1 - x0) / (y1 - y0)).clamp(bounds[0], bounds[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_simulated_way_grows_by_what_a_switch_costs() {
        let kernel = Kernel::parse("v6.12").unwrap();
        let mut machine = Machine::preset("1x1x2").unwrap();
        let same = [CpuId(0), CpuId(0)];
        for by in [By::Futex, By::Pipe] {
            machine.set("cost.context_switch_ns", 1_000).unwrap();
            let before = ping_pong(&machine, &kernel, by, same).unwrap();
            machine.set("cost.context_switch_ns", 2_000).unwrap();
            let after = ping_pong(&machine, &kernel, by, same).unwrap();
            // A longer run has a few more ticks.
            assert!((after - before - 1_000.0).abs() < 100.0, "{by:?}: {before} {after}");
        }
        assert_eq!(solve([1.0, 2.0], [10.0, 20.0], 25.0, [0.0, 9.0]), 2.5);
        assert_eq!(solve([1.0, 2.0], [10.0, 20.0], 99.0, [0.0, 9.0]), 9.0);
    }
}
