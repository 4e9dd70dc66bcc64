//! Tables, also for readers without scripts.

use std::fmt::{self, Display};

use schedlab_timeline::Head;

use crate::escape::Escaped;

/// A table. Columns after the first are numbers unless `text_columns` says otherwise.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Rows of cells.
    pub rows: Vec<Vec<String>>,
    /// Columns of text, besides the first.
    pub text_columns: Vec<usize>,
}

impl Table {
    /// A table of these columns.
    pub fn new<'a>(columns: impl IntoIterator<Item = &'a str>) -> Table {
        Table { columns: columns.into_iter().map(str::to_owned).collect(), ..Table::default() }
    }

    /// The same with text in some columns.
    pub fn with_text_in(self, columns: &[usize]) -> Table {
        Table { text_columns: columns.to_vec(), ..self }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }
}

impl Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = |column: usize| {
            if column == 0 || self.text_columns.contains(&column) { "" } else { " class=\"n\"" }
        };
        f.write_str("<div class=\"wide\"><table><thead><tr>")?;
        for (at, name) in self.columns.iter().enumerate() {
            write!(f, "<th{}>{}</th>", class(at), Escaped(name))?;
        }
        f.write_str("</tr></thead><tbody>\n")?;
        for row in &self.rows {
            f.write_str("<tr>")?;
            for (at, cell) in row.iter().enumerate() {
                let verdict = match cell.as_str() {
                    text if text.starts_with("better") => " class=\"better\"",
                    text if text.starts_with("worse") => " class=\"worse\"",
                    _ => class(at),
                };
                write!(f, "<td{verdict}>{}</td>", Escaped(cell))?;
            }
            f.write_str("</tr>\n")?;
        }
        f.write_str("</tbody></table></div>\n")
    }
}

/// Number of CPUs above which a table has a line for each LLC instead.
const CPUS: usize = 64;

/// Maximum number of tasks in a table.
const TASKS: usize = 40;

fn milliseconds(ns: u64) -> String {
    format!("{:.3}", ns as f64 / 1e6)
}

/// What each CPU did, or the CPUs of each LLC if there are many.
pub(crate) fn of_cpus(head: &Head) -> Table {
    let cpus = &head.cpus;
    let nr_cpus = cpus.node.len();
    let by_llc = nr_cpus > CPUS;
    let mut table = Table::new([
        if by_llc { "LLC" } else { "CPU" },
        "node",
        "CPUs",
        "busy, %",
        "in interrupts, %",
        "switches",
    ]);
    let mut groups: Vec<(u16, Vec<usize>)> = Vec::new();
    for cpu in 0..nr_cpus {
        let key = if by_llc { cpus.llc[cpu] } else { cpu as u16 };
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, members)) => members.push(cpu),
            None => groups.push((key, vec![cpu])),
        }
    }
    for (key, members) in groups {
        let sum = |column: &[u64]| members.iter().map(|&cpu| column[cpu]).sum::<u64>();
        let share = |column: &[u64]| {
            format!(
                "{:.1}",
                100.0 * sum(column) as f64 / (head.duration.max(1) * members.len() as u64) as f64
            )
        };
        table.row([
            key.to_string(),
            cpus.node[members[0]].to_string(),
            members.len().to_string(),
            share(&cpus.busy_ns),
            share(&cpus.stolen_ns),
            sum(&cpus.switches).to_string(),
        ]);
    }
    table
}

/// What the longest-running tasks did.
pub(crate) fn of_tasks(head: &Head) -> Table {
    let tasks = &head.tasks;
    let mut table = Table::new([
        "task",
        "ran, ms",
        "switched out",
        "woken",
        "moved",
        "mean wait after a wake-up, us",
        "longest, us",
    ]);
    let mut order: Vec<usize> = (2..tasks.pid.len()).collect();
    order.sort_by_key(|&task| (std::cmp::Reverse(tasks.run_ns[task]), task));
    for task in order.into_iter().take(TASKS) {
        let wakeups = tasks.wakeups[task];
        let mean = if wakeups == 0 {
            "-".to_owned()
        } else {
            format!("{:.1}", tasks.wait_ns[task] as f64 / wakeups as f64 / 1e3)
        };
        table.row([
            format!("{}-{}", tasks.name[task], tasks.pid[task]),
            milliseconds(tasks.run_ns[task]),
            tasks.switches[task].to_string(),
            wakeups.to_string(),
            tasks.migrations[task].to_string(),
            mean,
            format!("{:.1}", tasks.wait_ns_max[task] as f64 / 1e3),
        ]);
    }
    table
}

/// A sentence about the tables of a trace.
pub(crate) fn caption(head: &Head) -> String {
    let tasks = head.tasks.pid.len().saturating_sub(2);
    let shown = tasks.min(TASKS);
    let which = if shown < tasks {
        format!("the {shown} of {tasks} tasks that ran longest")
    } else {
        format!("all {tasks} tasks")
    };
    format!("CPUs and {which} of {}", head.title)
}
