//! A division by zero, a wild pointer or an endless loop in the C code of a library becomes a [`crate::Fault`], like its
//! `BUG()`.
//!
//! Why it is sound: the handler acts only on signals that interrupt an instruction of a library, so no Rust code and no
//! allocator is interrupted. Libraries have unwind tables for every instruction, and nothing to clean up on the way.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{mem, ptr};

use crate::fault;

/// What a thread gets whose call of a library does not return ([`crate::watched`]).
const HANGS: c_int = libc::SIGXCPU;

/// Such signals that were sent and are not handled yet. Any other is not ours.
static SENT: AtomicU32 = AtomicU32::new(0);

const SIGNALS: [(c_int, &CStr); 4] = [
    (libc::SIGFPE, c"a division by zero"),
    (libc::SIGSEGV, c"an access to memory that is not there"),
    (libc::SIGBUS, c"an access to memory that is not there"),
    (HANGS, c"the scheduler hangs"),
];

/// A thread, for [`interrupt`].
pub(crate) fn this_thread() -> libc::pthread_t {
    // SAFETY: it has no conditions.
    unsafe { libc::pthread_self() }
}

/// Ends the call of a library in which a thread is, if it is in the library's own code. The thread must not have ended.
pub(crate) fn interrupt(thread: libc::pthread_t) {
    SENT.fetch_add(1, Ordering::AcqRel);
    // SAFETY: the thread exists, and the signal has a handler since a library was loaded.
    unsafe { libc::pthread_kill(thread, HANGS) };
}

/// From now on such signals raise faults.
pub(crate) fn catch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for (signal, _) in SIGNALS {
            // SAFETY: `action` is a valid handler of three arguments; its other fields may be zero.
            unsafe {
                let mut action: libc::sigaction = mem::zeroed();
                action.sa_sigaction = trapped
                    as extern "C-unwind" fn(c_int, *mut libc::siginfo_t, *mut c_void)
                    as *const () as usize;
                // The handler does not return, so the signal must not stay blocked.
                action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER;
                libc::sigaction(signal, &action, ptr::null_mut());
            }
        }
    });
}

extern "C-unwind" fn trapped(signal: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    let hangs = signal == HANGS
        && SENT.fetch_update(Ordering::AcqRel, Ordering::Acquire, |sent| sent.checked_sub(1)).is_ok();
    // SAFETY: the kernel passes the context of the interrupted code.
    let at = unsafe { address(context.cast()) };
    let what = SIGNALS.iter().find(|(known, _)| *known == signal).map_or(c"a signal", |(_, what)| what);
    if let Some(library) = fault::library_at(at).filter(|_| hangs || signal != HANGS) {
        // As if `at` were the address to which a call returns.
        // SAFETY: the function has this type, and takes a string that ends with a zero.
        unsafe {
            if let Some(trap) = lab_trap(&library) {
                trap(what.as_ptr(), (at + 1) as *const c_void);
            }
        }
        fault::raise(&what.to_string_lossy(), at + 1);
    }
    if hangs {
        return; // it is in code of others that the library called
    }
    // Not ours: the instruction is repeated, and ends the process as it would have.
    // SAFETY: the default action needs no handler.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

/// The library's own way to end a run: one that leaves the stack of a call that waits for a stopper.
///
/// # Safety
/// The file is a library that is loaded.
unsafe fn lab_trap(library: &str) -> Option<unsafe extern "C-unwind" fn(*const c_char, *const c_void)> {
    let file = CString::new(library).ok()?;
    // SAFETY: both strings live as long as the calls; the library stays loaded, as its code has just run.
    unsafe {
        let handle = libc::dlopen(file.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if handle.is_null() {
            return None;
        }
        let found = libc::dlsym(handle, c"lab_trap".as_ptr());
        libc::dlclose(handle); // its owner has it still
        (!found.is_null()).then(|| {
            mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn(*const c_char, *const c_void)>(found)
        })
    }
}

/// The instruction that raised a signal, or 0 where it is not known how to find it.
///
/// # Safety
/// `context` is the third argument of a handler.
unsafe fn address(context: *const libc::ucontext_t) -> usize {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: see above.
    return unsafe { (*context).uc_mcontext.gregs[libc::REG_RIP as usize] as usize };
    #[cfg(target_arch = "aarch64")]
    // SAFETY: see above.
    return unsafe { (*context).uc_mcontext.pc as usize };
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    return {
        _ = context;
        0
    };
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;
    use std::process::Command;

    use super::*;

    /// Compiles C code to a library.
    fn compiled(name: &str, code: &str) -> Option<PathBuf> {
        let dir = std::env::temp_dir().join(format!("schedlab-trap-{name}-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let library = dir.join(format!("{}{name}.so", fault::LIBRARY));
        fs::write(dir.join("trap.c"), code).unwrap();
        let mut cc = Command::new("cc");
        cc.args(["-g", "-O2", "-shared", "-fPIC", "-fasynchronous-unwind-tables", "-o"]);
        let built = cc.arg(&library).arg("trap.c").current_dir(&dir).status();
        if !built.is_ok_and(|status| status.success()) {
            eprintln!("skipped: there is no C compiler");
            return None;
        }
        catch();
        Some(library)
    }

    #[test]
    fn a_loop_without_an_end_names_its_line() {
        let code = "static volatile int turns;\nvoid loops(void)\n{\n\tfor (;;) turns = 1;\n}\n";
        let Some(library) = compiled("loop", code) else { return };
        // SAFETY: the function has this type and runs nothing when it is loaded.
        let (loaded, loops) = unsafe {
            let loaded = libloading::Library::new(&library).unwrap();
            let loops = *loaded.get::<unsafe extern "C-unwind" fn()>(b"loops\0").unwrap();
            (loaded, loops)
        };
        let thread = this_thread();
        let left = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(std::time::Duration::from_millis(100));
                interrupt(thread);
            });
            // SAFETY: as above; the loop is what the handler is for.
            fault::guarded(|| unsafe { loops() }).unwrap_err().to_string()
        });
        assert!(left.ends_with("trap.c:4, loops(): the scheduler hangs"), "{left}");
        drop(loaded);
        fs::remove_dir_all(library.parent().unwrap()).unwrap();
    }

    #[test]
    fn a_division_by_zero_names_its_line() {
        let Some(library) = compiled("division", "int divide(int a, int b)\n{\n\treturn a / b;\n}\n") else {
            return;
        };
        // SAFETY: the function has these types and runs nothing when it is loaded.
        let (loaded, divide) = unsafe {
            let loaded = libloading::Library::new(&library).unwrap();
            let divide =
                *loaded.get::<unsafe extern "C-unwind" fn(c_int, c_int) -> c_int>(b"divide\0").unwrap();
            (loaded, divide)
        };
        // SAFETY: as above; a division by zero is what the handler is for.
        let quotient = |b| fault::guarded(|| unsafe { divide(6, b) }).map_err(|fault| fault.to_string());
        assert_eq!(quotient(3), Ok(2));
        let sentence = quotient(0).unwrap_err();
        assert!(sentence.ends_with("trap.c:3, divide(): a division by zero"), "{sentence}");
        assert_eq!(quotient(2), Ok(3), "and the next call works");
        drop(loaded);
        fs::remove_dir_all(library.parent().unwrap()).unwrap();
    }
}
