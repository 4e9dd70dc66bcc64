//! Where a kernel tree diverges from the side it is compared with, printed under the tables.

use schedlab::parting::{OfCpu, Parting, Placed, parting};
use schedlab::units::Time;
use schedlab::{Column, Experiment};
use serde_json::{Value, json};

use crate::error::Error;

/// Two columns and where they diverge.
pub struct Parted {
    columns: [String; 2],
    /// `None` if they never do in the examined run.
    found: Option<Parting>,
}

/// Where columns diverge from the first in the first run of the first row, if any of them is a kernel tree.
pub fn parts(experiment: &Experiment) -> Result<Vec<Parted>, Error> {
    let (base, others) = experiment.columns.split_first().expect("there is a column");
    let is_tree = |column: &Column| schedlab::kernels::is_tree(column.kernel());
    // Runs of different workloads diverge for other reasons than their kernels.
    let compared =
        others.iter().filter(|other| (is_tree(base) || is_tree(other)) && other.is_same_scenario(base));
    let of = |other: &'_ &Column| -> Result<Option<Parting>, Error> {
        let kernels = [base.kernel(), other.kernel()];
        Ok(parting(&base.scenario, &base.scenario.rows[0], kernels)?)
    };
    let names = |other: &Column| [base.name.clone(), other.name.clone()];
    compared.map(|other| Ok(Parted { columns: names(other), found: of(&other)? })).collect()
}

/// As lines.
pub fn text(parts: &[Parted]) -> String {
    let mut text = String::new();
    for Parted { columns: [base, other], found } in parts {
        let Some(found) = found else {
            text.push_str(&format!("parts  {other} never parts from {base}\n"));
            continue;
        };
        let [later, others_later] = found.later;
        text.push_str(&format!(
            "parts  {other} from {base} after {} equal decisions ({later} and {others_later} follow):\n",
            found.same
        ));
        for (column, first) in [base, other].into_iter().zip(&found.first) {
            let told = first.as_ref().map_or("the run is over".to_string(), |first| {
                format!("{} CPU {}  {}", Time(first.time_ns), first.cpu, first.sentence)
            });
            text.push_str(&format!("       {column}: {told}\n"));
        }
        let state: Vec<String> = found.state.iter().map(of_cpu).collect();
        if !state.is_empty() {
            text.push_str(&format!("       before it: {}\n", state.join("; ")));
        }
        for Placed { kind, paired, elsewhere } in &found.placements {
            text.push_str(&format!(
                "       of {paired} later {} of the same task, compared in order, {elsewhere} chose another CPU\n",
                match *kind {
                    "wakeup" => "wake-ups",
                    "fork" => "forks",
                    _ => "calls of exec()",
                }
            ));
        }
    }
    text
}

/// `CPU 3 runs a-1000, b-1001 waits`
fn of_cpu(of: &OfCpu) -> String {
    let runs = of.runs.as_ref().map_or("is idle".to_string(), |task| format!("runs {task}"));
    match &of.waits[..] {
        [] => format!("CPU {} {runs}", of.cpu),
        [task] => format!("CPU {} {runs}, {task} waits", of.cpu),
        tasks => format!("CPU {} {runs}, {} wait", of.cpu, tasks.join(" ")),
    }
}

/// As JSON: an array with one object for each pair.
pub fn json(parts: &[Parted]) -> Value {
    let one = |part: &Parted| json!({"columns": part.columns, "parts": part.found});
    parts.iter().map(one).collect()
}
