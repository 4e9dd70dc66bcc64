//! The drivers of kSTEP that have no published number: what their source says must happen does.

use schedlab::report::{Comparison, Options};
use schedlab::{Experiment, NoFiles, Scenario};

/// Name and text of each scenario.
macro_rules! scenarios {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../../../predictions/scenarios/B-K2-", $name, ".toml")))),*]
    };
}

const SCENARIOS: [(&str, &str); 9] = scenarios![
    "avg-vruntime-ceil",
    "freeze",
    "h-nr-runnable",
    "lag-vruntime",
    "min-deadline",
    "slice-update",
    "uclamp-inversion",
    "util-avg",
    "zero-vruntime",
];

/// What is not as expected.
fn unmet(name: &str, text: &str) -> Vec<String> {
    let scenario = Scenario::parse(name, text, &NoFiles).unwrap();
    let results = scenario.run(1, |_, _| ()).unwrap();
    let comparison = Comparison::new(&results.table(&Experiment::of(&scenario)), Options::default());
    let judgements = scenario.judge(&results, &comparison);
    assert!(judgements.len() >= 2, "{name}: both kernels are judged");
    judgements.into_iter().filter(|judgement| !judgement.met).map(|judgement| judgement.sentence).collect()
}

#[test]
fn what_each_driver_says_must_happen_does() {
    for (name, text) in SCENARIOS {
        assert_eq!(unmet(name, text), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn a_task_that_runs_on_or_a_weight_that_does_not_count_is_noticed() {
    let without = |name: &str, what: &str, instead: &str| {
        let text = SCENARIOS.iter().find(|(of, _)| *of == name).unwrap().1;
        assert!(text.contains(what), "{name} has {what}");
        unmet(name, &text.replace(what, instead)).len()
    };
    assert!(without("freeze", "\"freeze frozen\", ", "") > 0);
    assert!(without("lag-vruntime", "weight /g0 10000", "weight /g0 100") > 0);
    assert!(without("min-deadline", "\"weight /g0 10000\", \"sleep 1s\"", "\"sleep 1s\"") > 0);
    assert!(without("uclamp-inversion", "util_max = 205", "util_max = 1024") > 0);
    assert!(without("slice-update", "base_slice_ns=30000000", "base_slice_ns=700000") > 0);
}
