//! Message threads that wake workers by futex: schbench's shape.
//!
//! The program `wl_sleepers` of the recordings, step by step. A worker says that it is ready (its own word
//! becomes 0 and the message thread's count grows), wakes its message thread and sleeps; the message thread
//! sets the words of all workers that are ready and wakes each. A worker then computes, and every fourth time
//! sleeps by timer. After a while the main thread stops all.

use schedlab_topology::CpuId;
use schedlab_units::Duration;

use crate::param::params;
use crate::{Expected, Op, ProgramBuilder, SpecId, TaskSpec, Test, WordId, WorkloadBuilder};

params! {
    /// Message threads and their workers; see the module.
    Sleepers = "sleepers" {
        /// Message threads.
        messengers: u32 = 2,
        /// Workers of each message thread.
        workers: u32 = 8,
        /// How long they run.
        wall: Duration = Duration::millis(400),
        /// Work of a worker when it is woken.
        work: Duration = Duration::micros(60),
        /// How long a worker sleeps every fourth time; 0 for never.
        pause: Duration = Duration::micros(500),
        /// Time after which a message thread wakes up by itself.
        timeout: Duration = Duration::millis(2),
        /// The CPU on which the process starts.
        start_cpu: Option<CpuId> = None,
    }
}

impl Sleepers {
    /// Adds the tasks.
    pub fn add(&self, w: &mut WorkloadBuilder) {
        let process = w.process();
        let stop = w.word("stop", 0);
        let counts: Vec<WordId> = (0..self.messengers).map(|m| w.word(format!("count {m}"), 0)).collect();
        let nr_workers = self.messengers * self.workers;
        let ready: Vec<WordId> = (0..nr_workers).map(|i| w.word(format!("woken {i}"), 1)).collect();

        let first = w.next_task();
        for (i, &woken) in ready.iter().enumerate() {
            let count = counts[i / self.workers as usize];
            let program = w.program(format!("sl-w{i}"), |p| self.worker(p, stop, count, woken));
            w.task(TaskSpec::forked(format!("sl-w{i}"), program).thread_of(process));
        }
        for (m, workers) in ready.chunks(self.workers.max(1) as usize).enumerate() {
            let program = w.program(format!("sl-m{m}"), |p| self.messenger(p, stop, counts[m], workers));
            w.task(TaskSpec::forked(format!("sl-m{m}"), program).thread_of(process));
        }
        let threads = (first.0..w.next_task().0).map(SpecId);
        let main = w.program("sl-main", |p| {
            for thread in threads.clone() {
                p.fork(thread);
            }
            p.sleep(self.wall).word_set(stop, 1);
            for &woken in &ready {
                p.word_set(woken, 1).futex_wake(woken, 99);
            }
            for &count in &counts {
                p.word_add(count, 1).futex_wake(count, 99);
            }
            for thread in threads {
                p.join(thread);
            }
        });
        w.task(TaskSpec { start_cpu: self.start_cpu, ..TaskSpec::root("sl-main", main).thread_of(process) });
    }

    fn worker(&self, p: &mut ProgramBuilder, stop: WordId, count: WordId, woken: WordId) {
        let (again, out) = (p.label(), p.label());
        p.own_comm().place(again);
        for turn in 1..=4 {
            let (wait, go) = (p.label(), p.label());
            p.jump_if(stop, Test::Differs, 0, out);
            p.word_set(woken, 0).word_add(count, 1).futex_wake(count, 1);
            p.place(wait).jump_if(stop, Test::Differs, 0, out).jump_if(woken, Test::Differs, 0, go);
            p.futex_wait(woken, 0).jump(wait);
            p.place(go).run(self.work);
            if turn == 4 && self.pause > Duration::ZERO {
                p.sleep(self.pause);
            }
        }
        p.jump(again).place(out);
    }

    fn messenger(&self, p: &mut ProgramBuilder, stop: WordId, count: WordId, workers: &[WordId]) {
        let (again, out) = (p.label(), p.label());
        p.own_comm().place(again).jump_if(stop, Test::Differs, 0, out).word_load(count);
        for &woken in workers {
            let next = p.label();
            p.jump_if(woken, Test::Differs, 0, next).word_set(woken, 1).futex_wake(woken, 1).place(next);
        }
        p.op(Op::FutexWait { word: count, expected: Expected::Remembered, timeout: self.timeout });
        p.jump(again).place(out);
    }
}
