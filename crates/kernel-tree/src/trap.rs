//! A division by zero or a wild pointer in the C code of a library becomes a [`crate::Fault`], like its `BUG()`.
//!
//! Why it is sound: the handler acts only on signals that an instruction of a library raised, so no Rust code and no
//! allocator is interrupted. Libraries have unwind tables for every instruction, and nothing to clean up on the way.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::Once;
use std::{mem, ptr};

use crate::fault;

const SIGNALS: [(c_int, &CStr); 3] = [
    (libc::SIGFPE, c"a division by zero"),
    (libc::SIGSEGV, c"an access to memory that is not there"),
    (libc::SIGBUS, c"an access to memory that is not there"),
];

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
    // SAFETY: the kernel passes the context of the interrupted code.
    let at = unsafe { address(context.cast()) };
    let what = SIGNALS.iter().find(|(known, _)| *known == signal).map_or(c"a signal", |(_, what)| what);
    if let Some(library) = fault::library_at(at) {
        // As if `at` were the address to which a call returns.
        // SAFETY: the function has this type, and takes a string that ends with a zero.
        unsafe {
            if let Some(trap) = lab_trap(&library) {
                trap(what.as_ptr(), (at + 1) as *const c_void);
            }
        }
        fault::raise(&what.to_string_lossy(), at + 1);
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
    use std::process::Command;

    use super::*;

    #[test]
    fn a_division_by_zero_names_its_line() {
        let dir = std::env::temp_dir().join(format!("schedlab-trap-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let library = dir.join(format!("{}trap.so", fault::LIBRARY));
        fs::write(dir.join("trap.c"), "int divide(int a, int b)\n{\n\treturn a / b;\n}\n").unwrap();
        let mut cc = Command::new("cc");
        cc.args(["-g", "-O2", "-shared", "-fPIC", "-fasynchronous-unwind-tables", "-o"]);
        let built = cc.arg(&library).arg("trap.c").current_dir(&dir).status();
        if !built.is_ok_and(|status| status.success()) {
            eprintln!("skipped: there is no C compiler");
            return;
        }
        catch();
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
        fs::remove_dir_all(&dir).unwrap();
    }
}
