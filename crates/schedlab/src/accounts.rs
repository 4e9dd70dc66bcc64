//! The account of time of each CPU.

use schedlab_sim::{OfCpu, Part};
use serde::Serialize;

use crate::columns::Experiment;
use crate::experiment::{Results, Run};

/// Where the time of each CPU went in one column of a row, as the mean over its runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Accounts {
    /// What ran.
    pub title: String,
    /// Names of the parts: idle, the tasks' own work, and those of [`Part`].
    pub parts: Vec<&'static str>,
    /// For each CPU, how much of its time each part took, percent. They add up to 100.
    pub cpus: Vec<Vec<f64>>,
    /// The same for all CPUs together.
    pub total: Vec<f64>,
}

impl Results {
    /// The accounts of each row and column.
    pub fn accounts(&self, experiment: &Experiment) -> Vec<Accounts> {
        let cells = self.cells(experiment).filter(|(.., runs)| !runs.is_empty());
        cells
            .map(|(key, column, row, runs)| {
                let key = if key.is_empty() { String::new() } else { format!(" {key}") };
                of_runs(format!("{}{key} under {}", row.workload.name, column.name), runs)
            })
            .collect()
    }
}

fn of_runs(title: String, runs: &[Run]) -> Accounts {
    let nr_cpus = runs.iter().map(|run| run.account.cpus.len()).max().unwrap_or(0);
    let of_cpu = |cpu: usize| shares(runs.iter().filter_map(|run| run.account.cpus.get(cpu).copied()));
    Accounts {
        title,
        parts: ["idle", "own work"].into_iter().chain(Part::ALL.iter().map(|part| part.name())).collect(),
        cpus: (0..nr_cpus).map(of_cpu).collect(),
        total: shares(runs.iter().map(|run| run.account.total())),
    }
}

/// Percent of the time of all these accounts.
fn shares(accounts: impl Iterator<Item = OfCpu>) -> Vec<f64> {
    let mut sums = vec![0; 2 + Part::ALL.len()];
    for account in accounts {
        // A CPU that leaves an idle state counts as idle elsewhere.
        let idle = account.idle().saturating_sub(account.part(Part::IdleExit));
        let parts = Part::ALL.iter().map(|&part| account.part(part));
        for (sum, ns) in sums.iter_mut().zip([idle, account.own_work()].into_iter().chain(parts)) {
            *sum += ns;
        }
    }
    let all = sums.iter().sum::<u64>().max(1) as f64;
    sums.into_iter().map(|ns| ns as f64 * 100.0 / all).collect()
}

#[cfg(test)]
mod tests {
    use crate::{Experiment, NoFiles, Scenario};

    #[test]
    fn each_cpu_has_an_account_that_adds_up() {
        let text = "machine = \"2:class=zen3\"\nkernels = [\"v6.12\"]\nruns = 2\n[workload]\nduration = \"20ms\"\n\
                    [[workload.task]]\nname = \"hog\"\ncpus = \"0\"\nprogram = [\"loop forever\", \"run 1ms\", \"end\"]\n\
                    [[workload.task]]\nname = \"sleeper\"\ncpus = \"1\"\n\
                    program = [\"loop forever\", \"run 100us\", \"sleep 100us\", \"end\"]\n";
        let scenario = Scenario::parse("a scenario", text, &NoFiles).unwrap();
        let experiment = Experiment::of(&scenario);
        let mut results = experiment.nothing();
        experiment.extend(&mut results, 2, 1, false, || true, |_, _| ()).unwrap();
        let accounts = results.accounts(&experiment);
        assert_eq!((accounts.len(), accounts[0].cpus.len()), (1, 2));
        let of = |cpu: usize, part: &str| {
            accounts[0].cpus[cpu][accounts[0].parts.iter().position(|&name| name == part).unwrap()]
        };
        assert!(of(0, "own work") > 97.0 && of(0, "idle") < 1.0, "{accounts:?}");
        assert!((30.0..50.0).contains(&of(1, "own work")) && of(1, "idle") > 40.0, "{accounts:?}");
        assert!(of(1, "ways back from idle") > 0.0 && of(0, "ways back from idle") < 0.5, "{accounts:?}");
        for shares in accounts[0].cpus.iter().chain([&accounts[0].total]) {
            assert!((shares.iter().sum::<f64>() - 100.0).abs() < 1e-6, "{shares:?}");
        }
    }
}
