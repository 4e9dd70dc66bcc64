//! Whether affinity set the imbalance flag of a group.

use schedlab_sched::SdId;
use schedlab_topology::CpuId;

use super::Shadow;
use super::about::{About, Reading};

/// Tried where nothing else leads a fork to its CPU.
pub const FORK_MARK: Reading =
    Reading::new("FORK_MARK", "affinity set or cleared the imbalance flag of a group");

pub(super) const ABOUT: About = About {
    readings: &[FORK_MARK],
    ..About::new("IMBALANCE_MARK", "whether affinity set the imbalance flag of a group")
};

/// Flags of some groups, by the indices of their state.
pub type Marks = Vec<(u32, bool)>;

/// The flags that the groups above a forking CPU may have: those of the shadow with one turned over, then one alone.
pub fn of_fork(shadow: &Shadow, this: CpuId) -> impl Iterator<Item = Marks> + use<> {
    let domains = &shadow.sched.domains;
    let groups = domains.walk(this).flat_map(|(_, sd)| sd.groups.iter()).map(|group| domains.sg(group));
    let wide = groups.filter(|group| group.span.weight() > 1);
    let mut known: Marks =
        wide.map(|group| (group.sgc, domains.sgcs[group.sgc as usize].imbalance)).collect();
    // The widest first.
    known.reverse();
    let turned: Vec<Marks> = (0..known.len())
        .map(|of| {
            let mut marks = known.clone();
            marks[of].1 = !marks[of].1;
            marks
        })
        .collect();
    let alone = (0..known.len())
        .map(move |of| known.iter().enumerate().map(|(at, &(sgc, _))| (sgc, at == of)).collect());
    turned.into_iter().chain(alone)
}

/// The opposite flag of the group from which a pass over a domain takes.
pub fn of_move(shadow: &Shadow, sd: SdId, from: CpuId) -> Option<[(u32, bool); 1]> {
    let domains = &shadow.sched.domains;
    let group = domains.sd(sd).groups.iter().find(|&group| domains.sg(group).span.contains(from))?;
    let sgc = domains.sg(group).sgc;
    Some([(sgc, !domains.sgcs[sgc as usize].imbalance)])
}
