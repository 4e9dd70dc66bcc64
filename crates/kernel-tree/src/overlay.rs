//! Our C files, as they are written into the cache.

macro_rules! files {
    ($($name:literal),* $(,)?) => { [$(($name, include_str!(concat!("../c/", $name)))),*] };
}

/// Every file, by its name below the overlay's folder.
pub(crate) const FILES: [(&str, &str); 50] = files![
    "arch/Kconfig",
    "arch/Kconfig.debug",
    "arch/schedlab.config",
    "asm/asm/atomic.h",
    "asm/asm/barrier.h",
    "asm/asm/bitsperlong.h",
    "asm/asm/bug.h",
    "asm/asm/byteorder.h",
    "asm/asm/cache.h",
    "asm/asm/cmpxchg.h",
    "asm/asm/current.h",
    "asm/asm/elf.h",
    "asm/asm/fair_clock.h",
    "asm/asm/irq.h",
    "asm/asm/irqflags.h",
    "asm/asm/linkage.h",
    "asm/asm/mmu_context.h",
    "asm/asm/mmzone.h",
    "asm/asm/page.h",
    "asm/asm/paravirt.h",
    "asm/asm/paravirt_api_clock.h",
    "asm/asm/percpu.h",
    "asm/asm/pgtable.h",
    "asm/asm/processor.h",
    "asm/asm/ptrace.h",
    "asm/asm/sigcontext.h",
    "asm/asm/smp.h",
    "asm/asm/sparsemem.h",
    "asm/asm/spinlock.h",
    "asm/asm/spinlock_types.h",
    "asm/asm/string.h",
    "asm/asm/switch_to.h",
    "asm/asm/syscall.h",
    "asm/asm/thread_info.h",
    "asm/asm/tlb.h",
    "asm/asm/topology.h",
    "asm/asm/user.h",
    "asm/asm/vdso/clocksource.h",
    "asm/asm/vmalloc.h",
    "shim/bare.c",
    "shim/boot.c",
    "shim/drive.c",
    "shim/engine.c",
    "shim/lab.h",
    "shim/lab.lds.S",
    "shim/machine.c",
    "shim/memory.c",
    "shim/process.c",
    "shim/shim.h",
    "shim/state.c",
];

/// Files of the shim that are compiled with the tree's headers.
pub(crate) const SHIM: [&str; 7] = [
    "shim/memory.c",
    "shim/machine.c",
    "shim/boot.c",
    "shim/process.c",
    "shim/drive.c",
    "shim/engine.c",
    "shim/state.c",
];

/// Whether the overlay has a header with this name, which then replaces the tree's generic one.
pub(crate) fn has_header(name: &str) -> bool {
    FILES.iter().any(|(file, _)| file.strip_prefix("asm/asm/") == Some(name))
}
