//! The tunables of a tree: numbers that a kernel string sets, as in `tree:DIR+base_slice_ns=3000000`.

use schedlab_kernel_tree::Kernel as Library;
use schedlab_sched::{Kernel, Scaled, Tunables};

/// A tunable of our rules, the kernel's variable, and the variable's value on a machine.
type Row = (&'static str, &'static str, fn(&Tunables, &Scaled) -> u64);

const TUNABLES: [Row; 11] = [
    ("latency_ns", "sysctl_sched_latency", |_, scaled| scaled.latency),
    ("min_granularity_ns", "sysctl_sched_min_granularity", |_, scaled| scaled.min_granularity),
    ("wakeup_granularity_ns", "sysctl_sched_wakeup_granularity", |_, scaled| scaled.wakeup_granularity),
    ("base_slice_ns", "sysctl_sched_base_slice", |_, scaled| scaled.base_slice),
    ("migration_cost_ns", "sysctl_sched_migration_cost", |tunables, _| tunables.migration_cost_ns),
    ("nr_migrate", "sysctl_sched_nr_migrate", |tunables, _| tunables.nr_migrate),
    ("llc_epoch_period", "llc_epoch_period", |tunables, _| tunables.llc_epoch_period),
    ("llc_epoch_affinity_timeout", "llc_epoch_affinity_timeout", |tunables, _| {
        tunables.llc_epoch_affinity_timeout
    }),
    ("llc_overaggr_pct", "llc_overaggr_pct", |tunables, _| tunables.llc_overaggr_pct),
    ("llc_imb_pct", "llc_imb_pct", |tunables, _| tunables.llc_imb_pct),
    ("llc_aggr_tolerance", "llc_aggr_tolerance", |tunables, _| tunables.llc_aggr_tolerance),
];

/// Reads a part `NAME=VALUE` of a kernel string into our nearest rules, from which [`set`] takes it. Returns the
/// tunable's name.
///
/// # Errors
/// A tree has no such tunable, or the value is out of its range.
pub(crate) fn parse(part: &str, nearest: &mut Kernel) -> Result<&'static str, String> {
    let name = part.split('=').next().unwrap_or_default().trim();
    let Some((name, ..)) = TUNABLES.iter().find(|(known, ..)| known.eq_ignore_ascii_case(name)) else {
        let names: Vec<&str> = TUNABLES.iter().map(|(name, ..)| *name).collect();
        return Err(format!(
            "a tree has no tunable \"{name}\"; those that can be set are {}",
            names.join(", ")
        ));
    };
    nearest.switch(part).map_err(|error| error.to_string())?;
    nearest.name += &format!("+{part}");
    Ok(name)
}

/// Sets tunables of a library to what our rules have on a machine with this number of CPUs online.
///
/// # Errors
/// This kernel does not have one of them.
pub(crate) fn set(
    library: &mut Library,
    names: &[&str],
    nearest: &Kernel,
    nr_online: usize,
) -> Result<(), String> {
    let scaled = Scaled::new(&nearest.tunables, nr_online);
    for (name, variable, value) in TUNABLES.iter().filter(|(name, ..)| names.contains(name)) {
        let value = u32::try_from(value(&nearest.tunables, &scaled)).unwrap_or(u32::MAX);
        if !library.set_tunable(variable, value) {
            return Err(format!("Linux {} has no tunable {name} ({variable})", library.release()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_a_tunable_of_our_rules() {
        for (name, ..) in TUNABLES {
            assert!(Tunables::named(name).is_some(), "{name}");
        }
    }

    #[test]
    fn a_part_is_read_or_refused() {
        let read = |part: &str| {
            let mut nearest = Kernel::parse("v6.12").unwrap();
            parse(part, &mut nearest)
                .map(|name| format!("{name}: {} in {}", nearest.tunables.base_slice_ns, nearest.name))
        };
        assert_eq!(
            read("base_slice_ns=3000000").unwrap(),
            "base_slice_ns: 3000000 in v6.12+base_slice_ns=3000000"
        );
        assert!(
            read("base_slice_ns=3").unwrap_err().contains("12500"),
            "{}",
            read("base_slice_ns=3").unwrap_err()
        );
        assert!(
            read("hz=1000")
                .unwrap_err()
                .starts_with("a tree has no tunable \"hz\"; those that can be set are latency_ns,")
        );
    }
}
