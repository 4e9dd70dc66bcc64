//! What would have had to be different for our rules to lead to the kernel's choice.
//!
//! When a decision differs, the deciders are asked again, each time with one fact of the shadow changed: a busy CPU
//! made idle, a load or virtual time beyond its error, a sleeper still queued. The nearest fact that leads to the
//! kernel's choice is reported with its size. It is a hint and does not change the verdict.

mod least;
mod of_move;
mod of_placement;
mod of_times;
mod of_wakeup;

use crate::judge::Audit;
use crate::report::listener::Listener;
use crate::report::verdict::{Answer, Verdict};
use crate::unknown::otherwise::{Nearest, Otherwise};

/// Pairs are tried only among this many nearest facts.
const PAIRED: usize = 40;

impl<S: Listener> Audit<S> {
    /// What `ask` finds to be the nearest fact of a verdict, if the verdict differs and its story will be printed.
    pub(crate) fn why(
        &mut self,
        verdict: &Verdict,
        ask: impl FnOnce(&mut Self) -> Option<Nearest>,
    ) -> Option<Box<Nearest>> {
        if !self.asks_nearest(verdict) {
            return None;
        }
        (self.shadow.learned.supposing, self.shadow.learned.trusts) = (true, false);
        let nearest = ask(self);
        (self.shadow.learned.supposing, self.shadow.learned.trusts) = (false, true);
        nearest.map(Box::new)
    }

    /// Whether to look for the nearest fact: the verdict differs, and its story will be printed.
    fn asks_nearest(&self, verdict: &Verdict) -> bool {
        verdict.answer == Answer::Differs
            && self.hangs_on(verdict).is_none()
            && (self.options.nearest || {
                let gravity = self.gravity(verdict);
                self.report.would_tell(verdict, gravity, self.options.stories)
            })
    }
}

/// The first fact for which `leads` is true, or the first two if no single fact is enough. Nearer facts take
/// precedence. Facts that move tasks are tried before the others, because they need correct counts of tasks.
fn nearest(mut facts: Vec<Otherwise>, mut leads: impl FnMut(&[Otherwise]) -> bool) -> Option<Nearest> {
    facts.sort_by_key(Otherwise::distance);
    if let Some(&first) = facts.iter().find(|otherwise| leads(&[**otherwise])) {
        return Some(Nearest { first, second: None });
    }
    facts.truncate(PAIRED);
    let pairs = (0..facts.len()).flat_map(|far| (0..far).map(move |near| [near, far]));
    let mut pairs = pairs.map(|pair| pair.map(|at| facts[at])).filter(|[one, other]| !one.excludes(other));
    let [first, second] = pairs.find(|pair| {
        let mut pair = *pair;
        pair.sort_by_key(|otherwise| !otherwise.fact.moves_tasks());
        leads(&pair)
    })?;
    Some(Nearest { first, second: Some(second) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unknown::otherwise::Fact;
    use schedlab_topology::CpuId;

    fn cpu(cpu: u16, times: u64) -> Otherwise {
        let fact = Fact::Cpu { cpu: CpuId(cpu), idle: true, longer: true };
        Otherwise { fact, ns: Some(times * 1000), times: Some(times) }
    }

    #[test]
    fn the_nearest_fact_is_reported_and_two_only_if_no_single_one_is_enough() {
        let facts = || vec![cpu(3, 7), Otherwise::plain(Fact::SyncFlag), cpu(1, 2), cpu(2, 9)];
        let of = |cpu| Fact::Cpu { cpu: CpuId(cpu), idle: true, longer: true };
        let has = |facts: &[Otherwise], fact| facts.iter().any(|otherwise| otherwise.fact == fact);
        let alone = nearest(facts(), |facts| has(facts, of(3)) || has(facts, of(2)));
        assert_eq!(alone, Some(Nearest { first: cpu(3, 7), second: None }));
        let unsized_fact = nearest(facts(), |facts| has(facts, Fact::SyncFlag) || has(facts, of(3)));
        assert_eq!(
            unsized_fact.map(|nearest| nearest.first.fact),
            Some(Fact::SyncFlag),
            "before what is far off"
        );
        let both = nearest(facts(), |facts| has(facts, of(1)) && has(facts, of(2)));
        assert_eq!(both, Some(Nearest { first: cpu(1, 2), second: Some(cpu(2, 9)) }));
        assert_eq!(nearest(facts(), |_| false), None);
    }
}
