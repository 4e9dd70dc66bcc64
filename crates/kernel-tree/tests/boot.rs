//! Uses a real tree, if `SCHEDLAB_TREE` names one: it builds, boots and runs tasks, and its faults are sentences.

use schedlab_kernel_tree::{Cache, Curr, Kernel, KernelTask, Library, Tree, guarded};
use schedlab_topology::{CpuId, Topology};

fn library() -> Option<Library> {
    let Some(dir) = std::env::var_os("SCHEDLAB_TREE") else {
        eprintln!("skipped: SCHEDLAB_TREE names no kernel tree");
        return None;
    };
    let tree = Tree::open(dir.as_ref()).unwrap();
    let built = Cache::of_user().unwrap().build(&tree, &mut |step| eprintln!("{step}")).unwrap();
    Some(Library::load(&built).unwrap())
}

fn settle(kernel: &mut Kernel) {
    for _ in 0..1000 {
        let mut busy = false;
        for cpu in (0..kernel.nr_cpus()).map(CpuId::from) {
            let pending = kernel.pending(cpu);
            busy |= pending.any();
            if pending.ipi() {
                kernel.ipi(cpu);
            }
            if pending.softirq() {
                kernel.softirq(cpu);
            }
            kernel.resched(cpu);
            kernel.stopper(cpu);
        }
        if !busy {
            return;
        }
    }
    panic!("it does not settle");
}

#[test]
fn a_tree_builds_boots_and_runs() {
    let Some(library) = library() else { return };
    guarded(|| boots_and_runs(&library)).unwrap();
}

fn boots_and_runs(library: &Library) {
    let machine = Topology::preset_or_regular("2x2x4").unwrap();
    let mut two = [library.boot(&machine).unwrap(), library.boot(&machine).unwrap()];
    for (i, kernel) in two.iter_mut().enumerate() {
        kernel.now(1_000_000_000);
        for task in 0..20 {
            let new = kernel.fork(CpuId(0), false);
            assert_eq!(new, KernelTask(task));
            kernel.wake_new(CpuId(0), new);
            settle(kernel);
        }
        let count = |kernel: &Kernel| (0..16).map(|cpu| kernel.nr_running(CpuId(cpu))).sum::<u32>();
        assert_eq!(count(kernel), 20);
        assert!((0..16).all(|cpu| kernel.curr(CpuId(cpu)) != Curr::Idle), "20 tasks are on all of 16 CPUs");
        // Only the first of them continues: they share nothing.
        for ms in 1..=if i == 0 { 400 } else { 0 } {
            kernel.now(1_000_000_000 + ms * 1_000_000);
            for cpu in (0..16).map(CpuId).filter(|_| ms % 4 == 0) {
                kernel.tick(cpu);
            }
            settle(kernel);
        }
        assert_eq!(count(kernel), 20);
        assert_eq!(kernel.warnings(), (0, String::new()));
    }
    assert!(two[0].switches() > two[1].switches() + 20, "hogs that share a CPU take turns");
    assert!(
        two[0].domain(CpuId(0), 0).is_some_and(|(_, span)| span.weight() == 4),
        "four CPUs share a cache"
    );
}

#[test]
fn a_fault_is_a_sentence() {
    let Some(library) = library() else { return };
    let machine = Topology::preset_or_regular("1x1x2").unwrap();
    let kernel = guarded(|| library.boot(&machine)).unwrap().unwrap();
    let fault = guarded(|| kernel.task_state(KernelTask(7))).unwrap_err();
    assert_eq!(
        fault.to_string(),
        "the kernel cannot go on: the driver speaks of task 7, which it did not make"
    );
}
