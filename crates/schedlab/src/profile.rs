//! What a kernel profile of a run would show: cycles in the functions that read and write the load average of
//! a task group.

use crate::experiment::Run;

/// A function of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    /// Reads the group's load average.
    UpdateCfsGroup,
    /// Writes it.
    UpdateLoadAvg,
}

impl Function {
    /// All of them.
    pub const ALL: [Function; 2] = [Function::UpdateCfsGroup, Function::UpdateLoadAvg];

    /// Its name in the kernel.
    pub fn name(self) -> &'static str {
        match self {
            Function::UpdateCfsGroup => "update_cfs_group",
            Function::UpdateLoadAvg => "update_load_avg",
        }
    }

    /// Percent of the busy time of a node's CPUs; `None` if there is no such node, or it was idle.
    pub fn share(self, run: &Run, node: usize) -> Option<f64> {
        let node = run.profile.nodes.get(node)?;
        let spent = match self {
            Function::UpdateCfsGroup => node.update_cfs_group,
            Function::UpdateLoadAvg => node.update_load_avg,
        };
        (node.busy.0 > 0).then(|| 100.0 * spent.0 as f64 / node.busy.0 as f64)
    }

    /// The largest share of any node.
    pub fn worst(self, run: &Run) -> Option<f64> {
        (0..run.profile.nodes.len()).filter_map(|node| self.share(run, node)).max_by(f64::total_cmp)
    }

    /// Reads the name of a figure: `update_cfs_group node 1`, `update_cfs_group worst node`.
    pub fn figure(name: &str, run: &Run) -> Option<f64> {
        let (function, which) = Function::parse(name)?;
        match which {
            None => function.worst(run),
            Some(node) => function.share(run, node),
        }
    }

    /// The function in the name of a figure, and the node; `None` is the worst node.
    pub fn parse(name: &str) -> Option<(Function, Option<usize>)> {
        let function = Function::ALL.into_iter().find(|f| name.starts_with(f.name()))?;
        match name[function.name().len()..].trim() {
            "worst node" => Some((function, None)),
            which => Some((function, Some(which.strip_prefix("node ")?.parse().ok()?))),
        }
    }
}

/// Reads of groups' load averages.
pub(crate) fn reads(run: &Run) -> u64 {
    run.profile.nodes.iter().map(|node| node.reads).sum()
}

/// Writes of groups' load averages.
pub(crate) fn writes(run: &Run) -> u64 {
    run.profile.nodes.iter().map(|node| node.writes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_names_function_and_node() {
        assert_eq!(Function::parse("update_cfs_group node 1"), Some((Function::UpdateCfsGroup, Some(1))));
        assert_eq!(Function::parse("update_load_avg worst node"), Some((Function::UpdateLoadAvg, None)));
        for name in ["update_load_avg", "update_load_avg node", "update_cfs_rq node 1"] {
            assert_eq!(Function::parse(name), None, "{name}");
        }
    }
}
