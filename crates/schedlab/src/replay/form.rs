//! What no event of a recording shows, fitted to its counts.
//!
//! Some of what decides where tasks go leaves no trace in the events: how late idle CPUs hear of work, what the
//! kernel holds a pass of newly idle balancing to cost, whether a waker waits and what it says of its plans, which
//! calls of sched_yield() changed nothing. These things are few, have a meaning, and take few values each.

use std::fmt;

use schedlab_replay::{Learned, Wakers};
use schedlab_units::Duration;
use serde::Serialize;

/// One form of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Form {
    /// What wakers do that come before their wakee sleeps; of the programs.
    pub wakers: Wakers,
    /// When idle CPUs hear of work; of the recorded machine.
    pub hears: Hears,
    /// What the kernel holds a pass of newly idle balancing to cost when the recording begins, us; of the recorded machine.
    pub newidle_us: u64,
    /// Once in how many of its usual times a task yields that does, whether it shows or not; 0: only where it was seen; of the programs.
    #[serde(skip_serializing_if = "is_zero")]
    pub yields: u8,
}

fn is_zero(yields: &u8) -> bool {
    *yields == 0
}

/// When an idle CPU of the recorded machine hears of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hears {
    /// Of each wake-up as late as in the recording.
    Each,
    /// Of all in the time in which so many of a hundred did.
    Percent(u8),
    /// At once.
    AtOnce,
}

impl Hears {
    /// How late it is where nothing is known of the very wake-up.
    pub(super) fn latency(self, learned: &Learned) -> Duration {
        match self {
            Hears::Each => learned.idle_wakeup(10).unwrap_or_default(),
            Hears::Percent(percent) => learned.idle_wakeup(percent.into()).unwrap_or_default(),
            Hears::AtOnce => Duration::ZERO,
        }
    }
}

impl Form {
    /// What is taken if nothing is fitted.
    pub const USUAL: Form = Form { wakers: Wakers::Wait, hears: Hears::Each, newidle_us: 0, yields: 0 };

    /// One that is far from the usual one in everything.
    pub(super) const UNUSUAL: Form =
        Form { wakers: Wakers::Owe { sync: 50 }, hears: Hears::Percent(50), newidle_us: 1000, yields: 0 };

    /// The forms that differ from this one in one thing, each thing in turn; in calls of sched_yield() only where somebody makes any.
    pub(super) fn others(self, yields: bool) -> Vec<Vec<Form>> {
        let owe = [0, 25, 50, 75, 100].map(|sync| Wakers::Owe { sync });
        let wakers = [Wakers::Wait].into_iter().chain(owe).map(|wakers| Form { wakers, ..self });
        let newidle = [0, 250, 500, 1000, 2000, 5000, 20000].map(|newidle_us| Form { newidle_us, ..self });
        let part = [50, 10, 30, 70, 85, 95].map(Hears::Percent);
        let hears = [Hears::Each, Hears::AtOnce].into_iter().chain(part).map(|hears| Form { hears, ..self });
        let calls = [0, 1, 2, 3, 4, 6, 8].map(|yields| Form { yields, ..self });
        let mut things = vec![wakers.collect(), newidle.to_vec(), hears.collect()];
        things.extend(yields.then(|| calls.to_vec()));
        things
    }

    /// The same in short, as [`Form::parse`] reads it: whether wakers wait, or owe and how many are woken sync; when work is heard
    /// of; the cost of passes; calls of sched_yield() that do not show: `wait/each/0us`, `owe 50/30%/1000us/yields 2`.
    pub fn short(&self) -> String {
        let hears = match self.hears {
            Hears::Each => "each".to_string(),
            Hears::Percent(percent) => format!("{percent}%"),
            Hears::AtOnce => "at once".to_string(),
        };
        let wakers = match self.wakers {
            Wakers::Wait => "wait".to_string(),
            Wakers::Owe { sync } => format!("owe {sync}"),
        };
        let yields = if self.yields > 0 { format!("/yields {}", self.yields) } else { String::new() };
        format!("{wakers}/{hears}/{}us{yields}", self.newidle_us)
    }

    /// Reads what [`Form::short`] wrote.
    pub fn parse(text: &str) -> Option<Form> {
        let mut parts = text.split('/');
        let wakers = match parts.next()? {
            "wait" => Wakers::Wait,
            owe => Wakers::Owe { sync: owe.strip_prefix("owe ")?.parse().ok()? },
        };
        let hears = match parts.next()? {
            "each" => Hears::Each,
            "at once" => Hears::AtOnce,
            percent => Hears::Percent(percent.strip_suffix('%')?.parse().ok()?),
        };
        let newidle_us = parts.next()?.strip_suffix("us")?.parse().ok()?;
        let yields = match parts.next() {
            Some(yields) => yields.strip_prefix("yields ")?.parse().ok()?,
            None => 0,
        };
        Some(Form { wakers, hears, newidle_us, yields }).filter(|_| parts.next().is_none())
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.hears {
            Hears::Each => f.write_str("each wake-up heard of as late as recorded"),
            Hears::Percent(50) => f.write_str("all wake-ups heard of in the median time"),
            Hears::Percent(percent) => {
                write!(f, "all wake-ups heard of in the time in which the quickest {percent} % were")
            }
            Hears::AtOnce => f.write_str("wake-ups heard of at once"),
        }?;
        if self.newidle_us > 0 {
            write!(f, ", newly idle balancing held to cost {} us", self.newidle_us)?;
        }
        match self.yields {
            0 => Ok(()),
            1 => f.write_str(", sched_yield() called at its usual pace throughout"),
            n => write!(f, ", sched_yield() called once in {n} of its usual times"),
        }?;
        let Wakers::Owe { sync } = self.wakers else { return Ok(()) };
        f.write_str(", wakers that come first go on and owe the wake-up")?;
        match sync {
            0 => Ok(()),
            100 => f.write_str(", and wake as if they would sleep"),
            _ => write!(f, ", and wake {sync} % of all tasks as if they would sleep"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_differs_from_its_neighbours_in_one_thing() {
        let form = Form {
            wakers: Wakers::Owe { sync: 100 },
            hears: Hears::Percent(50),
            newidle_us: 1000,
            yields: 2,
        };
        let [wakers, newidle, hears, yields] = <[_; 4]>::try_from(form.others(true)).expect("four things");
        assert!(wakers.iter().all(|other| other.hears == form.hears) && wakers.contains(&form));
        assert!(newidle.iter().all(|other| other.hears == form.hears) && newidle.contains(&form));
        assert!(hears.iter().all(|other| other.newidle_us == form.newidle_us) && hears.contains(&form));
        assert!(yields.iter().all(|other| other.hears == form.hears) && yields.contains(&form));
        assert_eq!(form.others(false).len(), 3);
        for other in form.others(true).concat() {
            assert_eq!(Form::parse(&other.short()), Some(other));
        }
        assert_eq!(
            (form.short().as_str(), Form::parse("wait/each/0")),
            ("owe 100/50%/1000us/yields 2", None)
        );
        assert_eq!(
            form.to_string(),
            "all wake-ups heard of in the median time, newly idle balancing held to cost 1000 us, \
             sched_yield() called once in 2 of its usual times, wakers that come first go on and owe the wake-up, and wake as if they would sleep"
        );
    }
}
