//! What names tell of threads of the kernel.

use schedlab_topology::CpuId;

use crate::comm::Comm;

/// Kernel threads whose name ends in a CPU they are not bound to.
const UNBOUND: [&[u8]; 3] = [b"rcuop", b"rcuog", b"rcuos"];

/// The CPU a kernel thread is bound to: `ksoftirqd/3`, `kworker/3:1H`, not `kworker/u8:0`.
pub fn bound_kthread(comm: &Comm) -> Option<CpuId> {
    let name = comm.as_bytes();
    let slash = name.iter().position(|&byte| byte == b'/')?;
    let (head, rest) = (&name[..slash], &name[slash + 1..]);
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let worker = head == b"kworker" && rest.get(digits) == Some(&b':');
    if digits == 0 || UNBOUND.contains(&head) || !worker && digits != rest.len() {
        return None;
    }
    std::str::from_utf8(&rest[..digits]).ok()?.parse().ok().map(CpuId)
}

/// Whether a name is that of a kernel thread, as far as names tell: one that is bound to a CPU, or any worker.
pub fn is_kthread(comm: &Comm) -> bool {
    comm.as_bytes().starts_with(b"kworker/") || bound_kthread(comm).is_some()
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
            ("rcuop/4", None),
            ("jbd2/sda1-8", None),
            ("make", None),
        ] {
            assert_eq!(bound_kthread(&Comm::from(name)), cpu.map(CpuId), "{name}");
            assert_eq!(is_kthread(&Comm::from(name)), cpu.is_some() || name == "kworker/u8:0", "{name}");
        }
    }
}
