//! make -j: short-lived compile processes, a number of them at once.
//!
//! make takes a token for each job, forks a shell, which forks compiler and assembler with a pipe between them, as with
//! `-pipe`; the shell waits for both and make for the shells. Tokens bound how many run at once. A compiler reads and
//! parses for half of its work, then writes assembly during the rest, a block of the C library's buffer at a time; the
//! assembler sleeps on the pipe between blocks, so that a compiler wakes it over and over, synchronously, as writes to
//! a pipe do.
//!
//! Left out: the disk (everything is in the page cache), the linker at the end, and files that an assembler writes.

use schedlab_topology::CpuId;
use schedlab_units::Duration;

use crate::param::params;
use crate::{ChannelKind, Dist, Measure, MeasureRule, Policy, SchedAttr, TaskSpec, WorkloadBuilder};

/// Bytes that a compiler writes at once: the buffer of the C library.
const BLOCK: u32 = 4096;

/// Bytes a pipe holds.
const PIPE: u32 = 65_536;

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
        /// Kernel work of a compiler: page faults and file accesses.
        kernel_work: Duration = Duration::millis(80),
        /// Work of make and of a shell for a file.
        shell_work: Duration = Duration::millis(1),
        /// Bytes of assembly that a compiler writes; 0 leaves the assembler out. A kernel source file gives 100 to 1000 KB.
        assembly: u32 = 409_600,
        /// Work of the assembler for a block of 4 KB, about a hundred lines.
        assembler_work: Duration = Duration::micros(800),
        /// Whether the whole build runs as SCHED_IDLE.
        idle: bool = false,
        /// Cache footprint of a compiler, in bytes.
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
        let (sh, cc1, assembler) = (w.comm("sh"), w.comm("cc1"), w.comm("as"));
        let blocks = self.assembly.div_ceil(BLOCK);
        // Half of the work comes before the first block, the rest between blocks.
        let parts = if blocks == 0 { 1 } else { 2 };
        let uniform = |parts: u64| Dist::Uniform {
            low: Duration(self.work_min.0 / parts),
            high: Duration(self.work_max.0 / parts),
        };
        let parse = w.dist(uniform(parts));
        let emit = w.dist(uniform(parts * u64::from(blocks.max(1))));
        let kernel = Duration(self.kernel_work.0 / parts);
        let kernel_of_block = Duration(kernel.0 / u64::from(blocks.max(1)));
        let mut shells = Vec::new();
        for file in 0..self.files {
            let pipe = (blocks > 0).then(|| w.channel(format!("assembly {file}"), ChannelKind::Pipe, PIPE));
            let compiler = w.program(format!("cc1 {file}"), |p| {
                p.exec(cc1).run_kernel(kernel).run_draw(parse);
                if let Some(pipe) = pipe {
                    p.repeat(blocks, |p| {
                        p.run_draw(emit).run_kernel(kernel_of_block).write(pipe, BLOCK);
                    });
                }
            });
            let compiler =
                w.task(TaskSpec { footprint: self.footprint, ..TaskSpec::forked("cc1", compiler) });
            let assembles = pipe.map(|pipe| {
                let program = w.program(format!("as {file}"), |p| {
                    p.exec(assembler).repeat(blocks, |p| {
                        p.read(pipe, BLOCK).run(self.assembler_work);
                    });
                });
                w.task(TaskSpec::forked("as", program))
            });
            let shell = w.program(format!("sh {file}"), |p| {
                p.exec(sh).run(self.shell_work).fork(compiler);
                if let Some(assembles) = assembles {
                    p.fork(assembles);
                }
                p.wait_children().sem_post(tokens);
            });
            shells.push(w.task(TaskSpec::forked("sh", shell)));
        }
        let make = w.program("make", |p| {
            p.mark(begin, 0);
            for &shell in &shells {
                p.sem_wait(tokens).run(self.shell_work).fork(shell);
            }
            p.wait_children().mark(end, 0);
        });
        let idle = SchedAttr { policy: Policy::Idle { nice: 0 }, ..SchedAttr::default() };
        let attr = self.idle.then(|| w.attr(idle));
        w.task(TaskSpec { start_cpu: self.start_cpu, attr, ..TaskSpec::root("make", make) });
        w.measure(Measure {
            name: "elapsed".to_string(),
            unit: "s",
            lower_is_better: true,
            rule: MeasureRule::Elapsed { from: begin, to: end },
        });
    }
}
