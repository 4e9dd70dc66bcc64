//! What no event of a recording shows, fitted to its counts.
//!
//! Some facts that decide where tasks go leave no trace in the events: how late idle CPUs notice work, what the
//! kernel assumes a newly idle pass to cost, whether a waker waits and wakes sync, which calls of sched_yield()
//! had no effect. These facts are few, have a meaning, and take few values each.

use std::fmt;

use schedlab_replay::{Learned, Step, Wakers};
use schedlab_units::Duration;
use serde::Serialize;

/// One form of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Form {
    /// What a waker does if its wakee is not asleep yet; part of the programs.
    pub wakers: Wakers,
    /// When idle CPUs notice work; part of the recorded machine.
    pub hears: Hears,
    /// The kernel's assumed cost of a newly idle pass when the recording begins, us; part of the recorded machine.
    pub newidle_us: u64,
    /// A yielding task yields once per this many of its usual intervals, whether the call shows or not; 0: only where a
    /// call showed. Part of the programs.
    #[serde(skip_serializing_if = "is_zero")]
    pub yields: u8,
    /// Interrupts that end sleeps arrive on the CPUs where they arrived in the recording, not where tasks fall asleep;
    /// part of the recorded machine.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub interrupts: bool,
}

/// Properties of a recording that determine which forms are possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Has {
    /// Tasks that call sched_yield().
    pub yields: bool,
    /// Interrupts that end sleeps on other CPUs than where the task had been.
    pub interrupts: bool,
}

impl Has {
    /// The properties of a recording; interrupts count if one in twenty arrives elsewhere.
    pub fn of(learned: &Learned) -> Has {
        let count = |is: fn(&Step) -> bool| {
            learned.tasks.iter().flat_map(|task| &task.steps).filter(|step| is(step)).count()
        };
        let sleeps = count(|step| matches!(step, Step::Sleep(_)));
        Has {
            yields: learned.tasks.iter().any(|task| task.yields.is_some()),
            interrupts: count(|step| matches!(step, Step::InterruptOn { cpu, task_on } if cpu != task_on))
                * 20
                > sleeps,
        }
    }
}

fn is_zero(yields: &u8) -> bool {
    *yields == 0
}

/// When an idle CPU of the recorded machine notices work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hears {
    /// Each wake-up as late as in the recording.
    Each,
    /// All at this percentile of the recorded latencies.
    Percent(u8),
    /// At once.
    AtOnce,
}

impl Hears {
    /// The latency if nothing is known about the particular wake-up.
    pub(super) fn latency(self, learned: &Learned) -> Duration {
        match self {
            Hears::Each => learned.idle_wakeup(10).unwrap_or_default(),
            Hears::Percent(percent) => learned.idle_wakeup(percent.into()).unwrap_or_default(),
            Hears::AtOnce => Duration::ZERO,
        }
    }
}

impl Form {
    /// The form that is used if nothing is fitted.
    pub const USUAL: Form =
        Form { wakers: Wakers::Wait, hears: Hears::Each, newidle_us: 0, yields: 0, interrupts: false };

    /// A form that differs from the usual one in every property.
    pub(super) const UNUSUAL: Form = Form {
        wakers: Wakers::Owe { sync: 50 },
        hears: Hears::Percent(50),
        newidle_us: 1000,
        yields: 0,
        interrupts: false,
    };

    /// The forms that differ from this one in a single property, for each property in turn.
    pub(super) fn others(self, has: Has) -> Vec<Vec<Form>> {
        let owe = [0, 25, 50, 75, 100].map(|sync| Wakers::Owe { sync });
        let wakers = [Wakers::Wait].into_iter().chain(owe).map(|wakers| Form { wakers, ..self });
        let newidle = [0, 250, 500, 1000, 2000, 5000, 20000].map(|newidle_us| Form { newidle_us, ..self });
        let part = [50, 10, 30, 70, 85, 95].map(Hears::Percent);
        let hears = [Hears::Each, Hears::AtOnce].into_iter().chain(part).map(|hears| Form { hears, ..self });
        let calls = [0, 1, 2, 3, 4, 6, 8].map(|yields| Form { yields, ..self });
        let mut things = vec![wakers.collect(), newidle.to_vec(), hears.collect()];
        things.extend(has.yields.then(|| calls.to_vec()));
        let interrupts = [false, true].map(|interrupts| Form { interrupts, ..self });
        things.extend(has.interrupts.then(|| interrupts.to_vec()));
        things
    }

    /// The same in short, as [`Form::parse`] reads it: whether wakers wait, or owe and how many are woken sync; when
    /// work is noticed; the cost of passes; calls of sched_yield() that do not show; whether interrupts arrive as
    /// recorded: `wait/each/0us`, `owe 50/30%/1000us/yields 2/interrupts`.
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
        let interrupts = if self.interrupts { "/interrupts" } else { "" };
        format!("{wakers}/{hears}/{}us{yields}{interrupts}", self.newidle_us)
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
        let mut form = Form { wakers, hears, newidle_us, yields: 0, interrupts: false };
        for part in parts {
            match part.strip_prefix("yields ") {
                Some(yields) => form.yields = yields.parse().ok()?,
                None if part == "interrupts" => form.interrupts = true,
                None => return None,
            }
        }
        Some(form)
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.hears {
            Hears::Each => f.write_str("each wake-up delivered as late as recorded"),
            Hears::Percent(50) => f.write_str("all wake-ups delivered in the median time"),
            Hears::Percent(percent) => {
                write!(f, "all wake-ups delivered in the time of the fastest {percent} %")
            }
            Hears::AtOnce => f.write_str("wake-ups delivered immediately"),
        }?;
        if self.newidle_us > 0 {
            write!(f, ", newly idle balancing assumed to cost {} us", self.newidle_us)?;
        }
        match self.yields {
            0 => Ok(()),
            1 => f.write_str(", sched_yield() called at its usual rate throughout"),
            n => write!(f, ", sched_yield() called at 1/{n} of its usual rate"),
        }?;
        if self.interrupts {
            f.write_str(", interrupts on their recorded CPUs")?;
        }
        let Wakers::Owe { sync } = self.wakers else { return Ok(()) };
        f.write_str(", a waker that arrives before its wakee continues and wakes it later")?;
        match sync {
            0 => Ok(()),
            100 => f.write_str(", and their wake-ups are synchronous"),
            _ => write!(f, ", and {sync} % of their wake-ups are synchronous"),
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
            interrupts: true,
        };
        let all = Has { yields: true, interrupts: true };
        let [wakers, newidle, hears, yields, interrupts] =
            <[_; 5]>::try_from(form.others(all)).expect("five things");
        assert!(wakers.iter().all(|other| other.hears == form.hears) && wakers.contains(&form));
        assert!(newidle.iter().all(|other| other.hears == form.hears) && newidle.contains(&form));
        assert!(hears.iter().all(|other| other.newidle_us == form.newidle_us) && hears.contains(&form));
        assert!(yields.iter().all(|other| other.hears == form.hears) && yields.contains(&form));
        assert!(interrupts.iter().all(|other| other.yields == form.yields) && interrupts.contains(&form));
        assert_eq!(form.others(Has { yields: false, interrupts: false }).len(), 3);
        for other in form.others(all).concat() {
            assert_eq!(Form::parse(&other.short()), Some(other));
        }
        assert_eq!(
            (form.short().as_str(), Form::parse("wait/each/0")),
            ("owe 100/50%/1000us/yields 2/interrupts", None)
        );
        assert_eq!(
            form.to_string(),
            "all wake-ups delivered in the median time, newly idle balancing assumed to cost 1000 us, \
             sched_yield() called at 1/2 of its usual rate, interrupts on their recorded CPUs, a waker that arrives before its wakee continues and wakes it later, and their wake-ups are synchronous"
        );
    }
}
