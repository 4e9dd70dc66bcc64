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

/// The flags that the groups of a domain may have if a pass takes from one of them: those of the shadow with that group's
/// turned over; then, as a pass that found balance clears the flag and no event shows that, without the other groups'.
pub fn of_move(shadow: &Shadow, sd: SdId, from: CpuId) -> Vec<Marks> {
    let domains = &shadow.sched.domains;
    let groups = || domains.sd(sd).groups.iter().map(|group| domains.sg(group));
    let flag = |sgc: u32| domains.sgcs[sgc as usize].imbalance;
    let Some(own) = groups().find(|group| group.span.contains(from)).map(|group| group.sgc) else {
        return Vec::new();
    };
    let turned = (own, !flag(own));
    let others: Marks = groups()
        .filter(|group| group.sgc != own && flag(group.sgc))
        .map(|group| (group.sgc, false))
        .collect();
    if others.is_empty() {
        return vec![vec![turned]];
    }
    let both = others.iter().copied().chain([turned]).collect();
    vec![vec![turned], others, both]
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_sched::Kernel;
    use schedlab_topology::Topology;

    #[test]
    fn flags_of_other_groups_may_have_been_cleared() {
        let topology = Topology::regular("1x3x2").unwrap();
        let mut shadow = Shadow::new(&topology, &Kernel::parse("v5.18").unwrap(), Vec::new());
        let domains = &shadow.sched.domains;
        let (sd, groups) = domains
            .walk(CpuId(0))
            .map(|(id, sd)| (id, sd.groups.iter().map(|group| domains.sg(group).sgc).collect::<Vec<u32>>()))
            .last()
            .unwrap();
        let [_, own, other] = groups[..] else { panic!("{groups:?}") };
        assert_eq!(of_move(&shadow, sd, CpuId(2)), [[(own, true)]]);
        shadow.sched.domains.sgcs[other as usize].imbalance = true;
        let cleared = (other, false);
        assert_eq!(
            of_move(&shadow, sd, CpuId(2)),
            [vec![(own, true)], vec![cleared], vec![cleared, (own, true)]]
        );
    }
}
