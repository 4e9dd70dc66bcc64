//! Boot parameters of a kernel that its rules do not explain.

/// Parameters with the prefix of the scheduler's that a kernel from v4.13 to v7.2 has
/// (Documentation/admin-guide/kernel-parameters.txt).
const KNOWN: [&str; 4] = ["sched_debug", "sched_verbose", "sched_thermal_decay_shift", "sched_proxy_exec"];

/// The words of a kernel's command line (`/proc/cmdline`) that set a scheduler parameter unknown to all known
/// kernels, a sign of a patch with its own rules. Words after `--` are for init.
pub fn unknown_to_the_scheduler(command_line: &str) -> Vec<&str> {
    let words = command_line.split_whitespace().take_while(|word| *word != "--");
    let name = |word: &str| word.split('=').next().unwrap_or(word).replace('-', "_");
    words.filter(|word| name(word).starts_with("sched_") && !KNOWN.contains(&name(word).as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_no_known_kernel_are_distinguished() {
        for (line, unknown) in [
            ("BOOT_IMAGE=/vmlinuz root=/dev/vda1 ro quiet\n", vec![]),
            ("console=ttyS0 sched_verbose schedstats=enable preempt=lazy", vec![]),
            ("sched-debug sched_pack=15 quiet", vec!["sched_pack=15"]),
            ("quiet -- sched_pack=15", vec![]),
        ] {
            assert_eq!(unknown_to_the_scheduler(line), unknown, "{line}");
        }
    }
}
