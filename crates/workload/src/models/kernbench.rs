//! make -j: compile processes that come and go, a number of them at once.
//!
//! make takes a token for each job, forks a shell, which forks the compiler, which
//! becomes another program, computes and writes its output; the shell waits for it
//! and make for the shells. Tokens bound how many run at once.
//!
//! Left out: the disk (everything is in the page cache), the linker at the end, and
//! the pipe between compiler and assembler.

use schedlab_topology::CpuId;
use schedlab_units::Duration;

use crate::param::params;
use crate::{Dist, Measure, MeasureRule, TaskSpec, WorkloadBuilder};

params! {
    /// A kernel build; see the module.
    Kernbench = "kernbench" {
        /// Jobs at once, make's -j.
        jobs: u32 = 8,
        /// Files to compile.
        files: u32 = 200,
        /// Shortest work of a compiler.
        work_min: Duration = Duration::millis(300),
        /// Longest work of a compiler.
        work_max: Duration = Duration::millis(3000),
        /// Kernel work of a compiler: faults and file accesses.
        kernel_work: Duration = Duration::millis(80),
        /// Work of make and of a shell for a file.
        shell_work: Duration = Duration::millis(1),
        /// Bytes a compiler works on that caches should keep.
        footprint: u64 = 2 << 20,
        /// The CPU on which make starts.
        start_cpu: Option<CpuId> = None,
    }
}

impl Kernbench {
    /// Adds the tasks.
    pub fn add(&self, w: &mut WorkloadBuilder) {
        let (begin, end) = (w.label("build begin"), w.label("build end"));
        let tokens = w.sem("jobserver", self.jobs);
        let (sh, cc1) = (w.comm("sh"), w.comm("cc1"));
        let work = w.dist(Dist::Uniform { low: self.work_min, high: self.work_max });
        let compiler = w.program("cc1", |p| {
            p.exec(cc1).run_kernel(self.kernel_work).run_draw(work);
        });
        let compiler = w.task(TaskSpec { footprint: self.footprint, ..TaskSpec::forked("cc1", compiler) });
        let shell = w.program("sh", |p| {
            p.exec(sh).run(self.shell_work).fork(compiler).wait_children().sem_post(tokens);
        });
        let shell = w.task(TaskSpec::forked("sh", shell));
        let make = w.program("make", |p| {
            p.mark(begin, 0).repeat(self.files, |p| {
                p.sem_wait(tokens).run(self.shell_work).fork(shell);
            });
            p.wait_children().mark(end, 0);
        });
        w.task(TaskSpec { start_cpu: self.start_cpu, ..TaskSpec::root("make", make) });
        w.measure(Measure {
            name: "elapsed".to_string(),
            unit: "s",
            lower_is_better: true,
            rule: MeasureRule::Elapsed { from: begin, to: end },
        });
    }
}
