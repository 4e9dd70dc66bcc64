//! When each CPU balances: its intervals and failures so far.
//!
//! Failed passes allow later ones to take hot or large tasks, and in the end to ask the stopper.

use schedlab_sched::{IdleType, SdId};

use super::Shadow;
use super::about::About;
use super::beyond::{Candidate, Case, Of};
use super::otherwise::Otherwise;

const OCCASION: &str = "OCCASION";

pub(super) const ABOUT: About = About {
    further: &[(OCCASION, "the pass had been of another kind (idle, busy or newly idle) than ours")],
    beyond,
    ..About::new("BALANCE_TIME", "when each CPU balances, and how often it failed")
};

/// Asks with other numbers of failed passes of a domain. `ask` returns whether a number leads to another CPU than the wanted
/// source, or `None` to end. The source depends only on whether any pass failed, or more than are needed to ignore cache
/// hotness, so a kind of number that leads elsewhere is not asked again; `elsewhere`: whether the number in the shadow does.
pub fn each_failure(shadow: &Shadow, sd: SdId, elsewhere: bool, mut ask: impl FnMut(u32) -> Option<bool>) {
    let sd = shadow.sched.domains.sd(sd);
    let (before, tries) = (sd.nr_balance_failed, sd.cache_nice_tries);
    let kind = |failed: u32| usize::from(failed > 0) + usize::from(failed > tries);
    let mut leads_elsewhere = [false; 3];
    leads_elsewhere[kind(before)] = elsewhere;
    for failed in (0..=tries + 3).filter(|&failed| failed != before) {
        if leads_elsewhere[kind(failed)] {
            continue;
        }
        let Some(elsewhere) = ask(failed) else { return };
        leads_elsewhere[kind(failed)] = elsewhere;
    }
}

fn beyond(case: &Case<'_>, candidates: &mut Vec<Candidate>) {
    let Of::Move { idle, .. } = &case.of else { return };
    let occasions =
        [(IdleType::Idle, "idle"), (IdleType::NotIdle, "busy"), (IdleType::NewlyIdle, "becoming idle")];
    for (other, name) in occasions.into_iter().filter(|(other, _)| *other != idle.get()) {
        let idle = idle.clone();
        let had = Otherwise::plain(OCCASION, format!("the CPU had been {name}"));
        candidates.push(Candidate::new(had, move |shadow, look| {
            let before = idle.replace(other);
            let leads = look(shadow);
            idle.set(before);
            leads
        }));
    }
}
