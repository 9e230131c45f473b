//! System calls that a disk server gives up once it serves. It parses input from guests and
//! kernels, and needs no new file, program or privilege.
//!
//! The filter is a deny list, as in QEMU: the calls of Rust's runtime, the allocator and threads
//! differ by version and stay allowed. Open descriptors (the recording, the connections) keep
//! working.

use libc::{c_long, sock_filter, sock_fprog};
use std::io;

/// System calls for new files and names, programs, other processes, mounts, namespaces, users,
/// connections, and the kernel itself.
const DENIED: &[c_long] = &[
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_open_by_handle_at,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_mknodat,
    libc::SYS_mkdirat,
    libc::SYS_fchmodat,
    libc::SYS_fchownat,
    libc::SYS_truncate,
    libc::SYS_setxattr,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_kill,
    libc::SYS_pidfd_send_signal,
    libc::SYS_pidfd_getfd,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setgroups,
    libc::SYS_capset,
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_acct,
];
/// Older calls that newer architectures do not have.
#[cfg(target_arch = "x86_64")]
const DENIED_HERE: &[c_long] = &[
    libc::SYS_open,
    libc::SYS_creat,
    libc::SYS_rename,
    libc::SYS_link,
    libc::SYS_symlink,
    libc::SYS_mknod,
    libc::SYS_mkdir,
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_ioperm,
    libc::SYS_iopl,
];
#[cfg(not(target_arch = "x86_64"))]
const DENIED_HERE: &[c_long] = &[];

/// AUDIT_ARCH_* of include/uapi/linux/audit.h.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;
/// First number of x32, the second set of numbers for most calls of x86-64.
const X32: u32 = 0x4000_0000;
/// Offsets in `struct seccomp_data` (include/uapi/linux/seccomp.h).
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;

/// Denies all threads of this process the system calls that they no longer need: such a call fails
/// with EPERM. A kernel without seccomp changes nothing.
pub fn deny() -> io::Result<()> {
    deny_with(libc::SECCOMP_FILTER_FLAG_TSYNC)
}

fn deny_with(flags: libc::c_ulong) -> io::Result<()> {
    let mut filter = filter();
    let program = sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    rustix::thread::set_no_new_privs(true)?;
    // SAFETY: the kernel copies the program, which lives until the call returns.
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            &raw const program,
        )
    };
    match result {
        0 => Ok(()),
        // The ID of the thread that could not be synchronized.
        thread if thread > 0 => Err(io::Error::other(format!("thread {thread} has a filter"))),
        _ => match io::Error::last_os_error() {
            error if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EINVAL)) => Ok(()),
            error => Err(error),
        },
    }
}

/// Builds the filter in classic BPF (Documentation/userspace-api/seccomp_filter.rst): the
/// architecture, then each number; the last instruction denies.
fn filter() -> Vec<sock_filter> {
    let load = |at| instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, at);
    let denied: Vec<u32> = DENIED
        .iter()
        .chain(DENIED_HERE)
        .map(|&number| number as u32)
        .collect();
    let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let most = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
    // Distance from a comparison to the last instruction, past the remaining comparisons and the
    // instruction that allows.
    let after = |remaining: usize| (remaining + 1) as u8;
    let count = denied.len();
    let mut filter = vec![
        load(ARCHITECTURE_AT),
        instruction(equal, 0, after(count + 2), ARCHITECTURE),
        load(NUMBER_AT),
        instruction(most, after(count), 0, X32),
    ];
    for (done, number) in denied.into_iter().enumerate() {
        filter.push(instruction(equal, after(count - done - 1), 0, number));
    }
    let give = libc::BPF_RET | libc::BPF_K;
    filter.push(instruction(give, 0, 0, libc::SECCOMP_RET_ALLOW));
    let refusal = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    filter.push(instruction(give, 0, 0, refusal));
    filter
}

fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    /// Tests the filter without TSYNC, which applies it to this thread only.
    #[test]
    fn what_is_open_works_and_nothing_new_does() {
        let mut file = tempfile::tempfile().unwrap();
        let tried = std::thread::spawn(move || {
            deny_with(0).unwrap();
            file.write_all(b"content").unwrap();
            file.sync_all().unwrap();
            std::thread::spawn(|| {}).join().unwrap();
            let opened = std::fs::File::open("/dev/null").map(drop);
            let connected = std::os::unix::net::UnixStream::connect("/nowhere").map(drop);
            // SAFETY: no pointer is followed: there is no program at all.
            let executed = unsafe {
                libc::execve(
                    c"".as_ptr(),
                    [std::ptr::null()].as_ptr(),
                    [std::ptr::null()].as_ptr(),
                )
            };
            let executed = if executed == 0 {
                Ok(())
            } else {
                Err(io::Error::last_os_error())
            };
            // SAFETY: both arguments are NUL-terminated strings. x86-64 still has this older call,
            // under its own number.
            let removed = unsafe { libc::rename(c"/nothing".as_ptr(), c"/nowhere".as_ptr()) };
            let removed = if removed == 0 {
                Ok(())
            } else {
                Err(io::Error::last_os_error())
            };
            [opened, connected, executed, removed].map(|result| result.unwrap_err().raw_os_error())
        });
        assert_eq!(tried.join().unwrap(), [Some(libc::EPERM); 4]);
        assert!(std::fs::File::open("/dev/null").is_ok());
    }
}
