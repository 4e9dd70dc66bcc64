//! What the names of kernel threads show.

use schedlab_topology::CpuId;

use crate::comm::Comm;

/// Per-CPU threads of the kernel, named after their CPU, except for workers. Other threads with such names are not
/// bound: `rcuop/4` and `rcub/0` of the kernel, threads named so by a program, and truncated longer names such as
/// `dmcrypt_write/2`. `ktimersoftd` is from PREEMPT_RT, `erofs_worker` from a file system.
///
/// Kernel: smp_hotplug_thread, include/linux/smpboot.h, v4.13, v6.12, v7.2.
const PER_CPU: [&[u8]; 11] = [
    b"backlog_napi",
    b"cpuhp",
    b"erofs_worker",
    b"idle_inject",
    b"irq_work",
    b"ksoftirqd",
    b"ktimers",
    b"ktimersoftd",
    b"migration",
    b"rcuc",
    b"watchdog",
];

/// The CPU a kernel thread is bound to: `ksoftirqd/3`, `kworker/3:1H`, not `kworker/u8:0`.
pub fn bound_kthread(comm: &Comm) -> Option<CpuId> {
    let name = comm.as_bytes();
    let slash = name.iter().position(|&byte| byte == b'/')?;
    let (head, rest) = (&name[..slash], &name[slash + 1..]);
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let is_bound = match head {
        b"kworker" => rest.get(digits) == Some(&b':'),
        _ => PER_CPU.contains(&head) && digits == rest.len(),
    };
    if !is_bound {
        return None;
    }
    std::str::from_utf8(&rest[..digits]).ok()?.parse().ok().map(CpuId)
}

/// Whether a name is that of a kernel worker, bound to a CPU or not.
pub fn is_kworker(comm: &Comm) -> bool {
    comm.as_bytes().starts_with(b"kworker/")
}

/// Whether a task cannot be the kernel thread that its name says, because it runs on another CPU than that in the name.
/// Workers do run elsewhere, while their CPU is offline and before they are bound.
pub fn is_disproved(comm: &Comm, runs_on: CpuId) -> bool {
    !is_kworker(comm) && bound_kthread(comm).is_some_and(|cpu| cpu != runs_on)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_threads_of_one_cpu_are_known_by_their_name() {
        for (name, cpu) in [
            ("ksoftirqd/3", Some(3)),
            ("migration/12", Some(12)),
            ("kworker/5:1H", Some(5)),
            ("kworker/u8:0", None),
            ("irq_work/11", Some(11)),
            ("kworker/:1", None),
            ("kworker/5", None),
            ("migration/", None),
            ("rcuop/4", None),
            ("rcub/0", None),
            ("dmcrypt_write/2", None),
            ("pool/0", None),
            ("jbd2/sda1-8", None),
            ("make", None),
        ] {
            assert_eq!(bound_kthread(&Comm::from(name)), cpu.map(CpuId), "{name}");
        }
    }

    #[test]
    fn a_per_cpu_name_that_runs_elsewhere_is_a_worker() {
        for (name, cpu, disproved) in [
            ("watchdog/0", 1, true),
            ("watchdog/0", 0, false),
            ("kworker/0:1", 1, false),
            ("kworker/u8:0", 1, false),
            ("pool/0", 1, false),
        ] {
            assert_eq!(is_disproved(&Comm::from(name), CpuId(cpu)), disproved, "{name}");
        }
    }
}
