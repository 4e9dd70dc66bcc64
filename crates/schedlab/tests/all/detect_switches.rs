//! Every remedy that a detector names must be a valid part of a kernel string.

use schedlab::sched::{Kernel, PRESETS};

#[test]
fn every_switch_that_a_finding_names_is_one_of_some_kernel() {
    for avoid in schedlab_report::detect::SWITCHES {
        let understood = |preset: &&str| Kernel::parse(&format!("{preset}+{}", avoid.switch)).is_ok();
        assert!(PRESETS.iter().any(understood), "{}", avoid.switch);
    }
}
