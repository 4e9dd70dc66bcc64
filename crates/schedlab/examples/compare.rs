//! Compares two kernels on a scenario: `cargo run --example compare -- scenarios/sis-util.toml v6.12 v6.12+NO_SIS_UTIL`.

use schedlab::report::{Comparison, Options, Stat, render};
use schedlab::sched::Kernel;
use schedlab::{Experiment, NoFiles, Scenario};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [file, kernels @ ..] = &args[..] else {
        return Err("name a scenario, and kernels to compare".into());
    };
    let text = std::fs::read_to_string(file)?;
    let mut scenario = Scenario::parse(file, &text, &NoFiles)?;
    if !kernels.is_empty() {
        scenario.kernels = kernels.iter().map(|name| Kernel::parse(name)).collect::<Result<_, _>>()?;
    }
    // All kernels run with the same seeds, so runs are compared in pairs.
    let results = scenario.run(0, |done, total| eprint!("\r{done} of {total} runs"))?;
    let table = results.table(&Experiment::of(&scenario));
    println!("\n{}", render::text(&Comparison::new(&table, Options::default()), &Stat::MAIL));
    Ok(())
}
