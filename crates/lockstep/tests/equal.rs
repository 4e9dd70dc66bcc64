//! Uses a real tree of Linux 6.12 or 7.2, if `SCHEDLAB_TREE` names one: it and our rules are equal, and with a rule
//! toggled they are not.

use schedlab_kernel_tree::{Cache, Library, Tree};
use schedlab_lockstep::{Operation, Plan, Story, nearest, prepared, run, shrink};
use schedlab_topology::Topology;

fn plan(loads: &str, with: &str) -> Option<Plan> {
    let Some(dir) = std::env::var_os("SCHEDLAB_TREE") else {
        eprintln!("skipped: SCHEDLAB_TREE names no kernel tree");
        return None;
    };
    let tree = Tree::open(dir.as_ref()).unwrap();
    let built = Cache::of_user().unwrap().build(&tree, &mut |step| eprintln!("{step}")).unwrap();
    Some(Plan {
        library: Library::load(&built).unwrap(),
        rules: prepared(&format!("{}{with}", nearest(&tree))).unwrap(),
        machine: Topology::preset_or_regular("1x2x4").unwrap(),
        tasks: 12,
        steps: 1000,
        seed: 2,
        loads: loads.parse().unwrap(),
    })
}

#[test]
fn a_tree_and_its_rules_are_equal() {
    for loads in ["plain", "nohz", "nice,groups", "sync,irq,yield,exit"] {
        let Some(plan) = plan(loads, "") else { return };
        let ended = run(&plan).unwrap();
        assert!(ended.equal(), "{loads}: after {}: {}", ended.at_work, ended.differ[0]);
        assert!(ended.counts.wakeups > 100 && ended.counts.states > 1000, "{:?}", ended.counts);
    }
}

#[test]
fn a_refused_deadline_reads_the_clock() {
    let Some(plan) = plan("deadline", "") else { return };
    // One CPU has no bandwidth for so many deadline tasks.
    let machine = Topology::preset_or_regular("1x1x1").unwrap();
    let ended = run(&Plan { machine, tasks: 60, steps: 3000, seed: 1, ..plan }).unwrap();
    assert!(ended.equal(), "after {}: {}", ended.at_work, ended.differ[0]);
}

#[test]
fn lazy_requests_are_equal_and_are_honoured() {
    let Some(plan) = plan("lazy", "") else { return };
    let plan = Plan { tasks: 40, steps: 3000, ..plan };
    let tree = Tree::open(std::env::var_os("SCHEDLAB_TREE").unwrap().as_ref()).unwrap();
    if let Err(why) = plan.loads.fit(&tree) {
        return eprintln!("skipped: {why}");
    }
    let ended = run(&plan).unwrap();
    assert!(ended.equal(), "after {}: {}", ended.at_work, ended.differ[0]);
    let honoured = ended.operations.iter().filter(|of| matches!(of, Operation::ReschedLazy { .. })).count();
    assert!(honoured > 20, "{honoured}");
}

#[test]
fn a_rule_that_is_turned_over_is_seen_and_reported_in_few_operations() {
    let Some(plan) = plan("plain", "+NO_DELAY_DEQUEUE") else { return };
    let ended = run(&plan).unwrap();
    assert!(!ended.equal());
    let small = shrink(&plan, &ended, 200);
    assert!(small.len() < ended.operations.len() / 2, "{} of {}", small.len(), ended.operations.len());
    let story = Story::of(&plan, &small).unwrap().to_string();
    assert!(story.contains(ended.differ[0].field), "{story}");
}
