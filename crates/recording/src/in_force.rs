//! Switches and tunables of the recorded kernel, from the fact files.
//!
//! `sched_features.txt` is /sys/kernel/debug/sched/features. `debug_sched.txt` contains the files beside it, each with
//! its content. `sysctl.txt` contains those of /proc/sys/kernel, which held most of these tunables up to v5.12. These
//! values were in force during the recording, whatever the defaults of that kernel are. `config.txt` contains lines of
//! the kernel's build configuration, and `cmdline.txt` its boot command line.

use schedlab_sched::{Kernel, Scaled, Tunables};

/// Sets the tick rate and the preemption model with which a kernel was built and booted, if recorded.
///
/// Kernel: kernel/Kconfig.hz; kernel/Kconfig.preempt; sched_dynamic_mode(), kernel/sched/core.c, v6.1 to v7.2.
pub fn apply_config(kernel: &mut Kernel, config: &str, command_line: &str) {
    if let Some(hz) = option(config, "CONFIG_HZ") {
        let _ = kernel.switch(&format!("hz={hz}"));
    }
    let models = [
        ("CONFIG_PREEMPT_NONE", "none"),
        ("CONFIG_PREEMPT_VOLUNTARY", "voluntary"),
        ("CONFIG_PREEMPT", "full"),
        ("CONFIG_PREEMPT_LAZY", "lazy"),
    ];
    let is_set = |name| option(config, name) == Some("y");
    let built = models.into_iter().find(|(name, _)| is_set(name)).map(|(_, model)| model);
    let fixed = !config.is_empty() && !is_set("CONFIG_PREEMPT_DYNAMIC");
    let words = command_line.split_whitespace().take_while(|word| *word != "--");
    let booted = words.filter_map(|word| word.strip_prefix("preempt=")).last().filter(|_| !fixed);
    for model in built.into_iter().chain(booted) {
        // Lazy preemption is the same in a kernel built without dynamic preemption.
        let build = if fixed && model != "lazy" { "static/" } else { "" };
        let _ = kernel.switch(&format!("preempt={build}{model}"));
    }
}

/// The value of a configuration option.
fn option<'a>(config: &'a str, name: &str) -> Option<&'a str> {
    config.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('=').map(str::trim))
}

/// Sets the switches of a kernel as recorded. Unknown names are ignored: those switches decide nothing here.
pub fn apply_features(kernel: &mut Kernel, features: &str) {
    for word in features.split_whitespace() {
        let _ = kernel.switch(word);
    }
}

/// Sets the tunables of a kernel from such a file, recorded on a machine with `nr_online` CPUs online. Tunables that
/// scale with the number of CPUs are recorded after scaling, and the scaling itself is recorded if it was set.
pub fn apply_tunables(kernel: &mut Kernel, file: &str, nr_online: usize) {
    let lines = || file.lines().filter_map(in_force);
    for (_, name, value) in lines() {
        if name == "tunable_scaling" {
            let _ = kernel.switch(&format!("{name}={value}"));
        }
    }
    let one = Tunables { base_slice_ns: 1, ..kernel.tunables.clone() };
    let factor = Scaled::new(&one, nr_online).base_slice;
    for (folder, name, value) in lines() {
        if let Some(word) = word_of(folder, name, value, factor) {
            let _ = kernel.switch(&word);
        }
    }
}

/// The word of a kernel string that sets a recorded value. Some tunables were scaled by `factor`, which depends on the
/// number of CPUs.
fn word_of(folder: &str, name: &str, value: &str, factor: u64) -> Option<String> {
    let number = value.parse::<u64>();
    Some(match name {
        "enabled" if folder.ends_with("/llc_balancing") && value == "0" => "NO_SCHED_CACHE".into(),
        _ if folder.ends_with("/llc_balancing") => format!("llc_{name}={value}"),
        _ if folder.ends_with("/fair_server/cpu0") => format!("fair_server_{name}_ns={value}"),
        "latency_ns" | "min_granularity_ns" | "wakeup_granularity_ns" | "base_slice_ns" => {
            format!("{name}={}", number.ok()? / factor)
        }
        "migration_cost_ns"
        | "nr_migrate"
        | "idle_min_granularity_ns"
        | "cfs_bandwidth_slice_us"
        | "rt_period_us"
        | "rr_timeslice_ms" => format!("{name}={}", number.ok()?),
        // -1 means no limit.
        "rt_runtime_us" => format!("{name}={}", number.unwrap_or(i32::MAX as u64)),
        "time_avg_ms" => format!("sched_{name}={}", number.ok()?),
        "preempt" => format!("preempt={}", value.split(['(', ')']).nth(1).unwrap_or_default()),
        _ => return None,
    })
}

/// The folder, name and content of a recorded file. A sysctl gets the name that debugfs uses for the same tunable.
fn in_force(line: &str) -> Option<(&str, &str, &str)> {
    let (path, value) = line.split_once(' ')?;
    let (folder, name) = path.rsplit_once('/')?;
    Some((folder, name.strip_prefix("sched_").unwrap_or(name), value.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_sched::{Feature, PreemptModel};

    #[test]
    fn a_kernel_has_the_tick_and_the_preemption_of_its_configuration() {
        let dynamic = "CONFIG_HZ_1000=y\nCONFIG_HZ=1000\n# CONFIG_PREEMPT_NONE is not set\n\
                       CONFIG_PREEMPT_VOLUNTARY=y\nCONFIG_PREEMPT_DYNAMIC=y\n";
        for (config, command_line, hz, preempt) in [
            ("", "", 250, "voluntary"),
            ("", "quiet preempt=full", 250, "full"),
            (dynamic, "quiet", 1000, "voluntary"),
            (dynamic, "preempt=none -- preempt=full", 1000, "none"),
            (dynamic, "preempt=nonsense", 1000, "voluntary"),
            ("CONFIG_HZ=100\nCONFIG_PREEMPT_NONE=y\n", "preempt=full", 100, "static/none"),
            ("CONFIG_PREEMPT_LAZY=y\nCONFIG_PREEMPT_DYNAMIC=y\n", "", 250, "lazy"),
            ("CONFIG_PREEMPT=y\nCONFIG_PREEMPT_DYNAMIC=y\n", "preempt=lazy", 250, "lazy"),
        ] {
            let mut kernel = Kernel::parse("v6.18").unwrap();
            apply_config(&mut kernel, config, command_line);
            assert_eq!(
                (kernel.tunables.hz, kernel.preempt.name().as_ref()),
                (hz, preempt),
                "{config:?} {command_line:?}"
            );
        }
    }

    #[test]
    fn cache_aware_balancing_is_as_it_was_set() {
        let mut kernel = Kernel::parse("v7.2").unwrap();
        let text = "/sys/kernel/debug/sched/llc_balancing/enabled 1\n\
                    /sys/kernel/debug/sched/llc_balancing/epoch_period 7\n\
                    /sys/kernel/debug/sched/llc_balancing/aggr_tolerance 100\n";
        apply_tunables(&mut kernel, text, 16);
        assert_eq!((kernel.tunables.llc_epoch_period, kernel.tunables.llc_aggr_tolerance), (7, 100));
        assert!(kernel.has(Feature::SchedCache));
        apply_tunables(&mut kernel, "/sys/kernel/debug/sched/llc_balancing/enabled 0\n", 16);
        assert!(!kernel.has(Feature::SchedCache));
    }

    #[test]
    fn settings_in_force_replace_the_defaults() {
        let mut kernel = Kernel::parse("v6.12").unwrap();
        apply_features(&mut kernel, "NO_SIS_UTIL NI_RANDOM NO_SUCH_THING\n");
        assert!(!kernel.has(Feature::SisUtil) && kernel.has(Feature::NiRandom));
        let text = "/sys/kernel/debug/sched/base_slice_ns 8000000\n\
                    /sys/kernel/debug/sched/migration_cost_ns 250000\n\
                    /sys/kernel/debug/sched/preempt none voluntary (full) \n\
                    /sys/kernel/debug/sched/verbose Y\n";
        apply_tunables(&mut kernel, text, 16);
        assert_eq!(kernel.tunables.base_slice_ns, 2_000_000, "eight CPUs and more have four times that");
        assert_eq!(kernel.tunables.migration_cost_ns, 250_000);
        assert_eq!(kernel.preempt.model, PreemptModel::Full);
    }

    #[test]
    fn sysctls_replace_the_defaults_too() {
        let mut kernel = Kernel::parse("v5.10").unwrap();
        let text = "/proc/sys/kernel/sched_latency_ns 24000000\n\
                    /proc/sys/kernel/sched_min_granularity_ns 10000000\n\
                    /proc/sys/kernel/sched_rr_timeslice_ms 30\n\
                    /proc/sys/kernel/sched_cfs_bandwidth_slice_us 3000\n\
                    /proc/sys/kernel/sched_rt_period_us 500000\n\
                    /proc/sys/kernel/sched_rt_runtime_us -1\n\
                    /proc/sys/kernel/sched_tunable_scaling 2\n\
                    /proc/sys/kernel/sched_wakeup_granularity_ns 15000000\n\
                    /proc/sys/kernel/sched_schedstats 1\n";
        let server = "/sys/kernel/debug/sched/fair_server/cpu0/runtime 20000000\n\
                      /sys/kernel/debug/sched/fair_server/cpu0/period 400000000\n";
        for file in [server, text] {
            apply_tunables(&mut kernel, file, 4);
        }
        let expected = Tunables {
            latency_ns: 6_000_000,
            min_granularity_ns: 2_500_000,
            wakeup_granularity_ns: 3_750_000,
            tunable_scaling: 2,
            rr_timeslice_ms: 30,
            cfs_bandwidth_slice_us: 3_000,
            rt_period_us: 500_000,
            rt_runtime_us: i32::MAX as u64,
            fair_server_runtime_ns: 20_000_000,
            fair_server_period_ns: 400_000_000,
            ..Kernel::parse("v5.10").unwrap().tunables
        };
        assert_eq!(kernel.tunables, expected);
    }
}
