//! Where the time of each CPU went, as a table.

use schedlab::Accounts;
use schedlab::report::render::{Lean, columns};

/// A line for each CPU and one for all, parts as columns; parts that took no time are left out.
pub fn text(accounts: &Accounts) -> String {
    let shown: Vec<usize> = (0..accounts.parts.len())
        .filter(|&part| accounts.cpus.iter().any(|shares| shares[part] >= 0.005))
        .collect();
    let line = |name: String, shares: &[f64]| {
        let of_parts = shown.iter().map(|&part| format!("{:.2}", shares[part]));
        std::iter::once(name).chain(of_parts).collect::<Vec<_>>()
    };
    let head = shown.iter().map(|&part| heading(accounts.parts[part]).to_string());
    let mut lines = vec![std::iter::once("CPU".to_string()).chain(head).collect::<Vec<_>>()];
    lines.extend(accounts.cpus.iter().enumerate().map(|(cpu, shares)| line(cpu.to_string(), shares)));
    lines.push(line("all".to_string(), &accounts.total));
    let leans = vec![Lean::Right; shown.len() + 1];
    format!(" Account of time for '{}', percent:\n\n{}", accounts.title, columns(&lines, &leans, "  "))
}

/// A name that fits above a column.
fn heading(part: &str) -> &str {
    match part {
        "calls and page faults" => "calls, faults",
        "balance passes" => "passes",
        "lines from other caches" => "lines",
        "waiting for lines and locks" => "waiting",
        "refilling caches" => "refills",
        "switches of tasks" => "switches",
        "ways back from idle" => "back from idle",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_took_time_have_a_column() {
        let accounts = Accounts {
            title: "hogs under v6.12".to_string(),
            parts: vec!["idle", "own work", "calls", "lines from other caches"],
            cpus: vec![vec![20.0, 75.0, 0.0, 5.0], vec![100.0, 0.0, 0.0, 0.0]],
            total: vec![60.0, 37.5, 0.0, 2.5],
        };
        let expected = " Account of time for 'hogs under v6.12', percent:

CPU    idle  own work  lines
  0   20.00     75.00   5.00
  1  100.00      0.00   0.00
all   60.00     37.50   2.50
";
        assert_eq!(text(&accounts), expected);
    }
}
