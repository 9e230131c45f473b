//! System calls that a disk server still makes once it serves. Any other call kills it.
//!
//! The server parses input from guests and kernels. It needs no new file, program, connection or
//! privilege: the recording, the disks and the connections are open.

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule,
};
use std::collections::BTreeMap;

/// Calls of the front ends, the recording and the timers.
const SERVING: &[libc::c_long] = &[
    libc::SYS_accept4,
    libc::SYS_close,
    libc::SYS_fallocate,
    libc::SYS_fdatasync,
    libc::SYS_fstatfs,
    libc::SYS_ftruncate,
    libc::SYS_getsockopt,
    libc::SYS_io_uring_enter,
    libc::SYS_ppoll,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_recvfrom,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_shutdown,
    libc::SYS_timerfd_settime,
    // The end of ublk's guard.
    libc::SYS_wait4,
    libc::SYS_write,
    libc::SYS_writev,
];
/// Calls of the allocator, of threads and of clocks: glibc and Rust's standard library.
const RUNTIME: &[libc::c_long] = &[
    libc::SYS_brk,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_futex,
    libc::SYS_geteuid,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_gettid,
    libc::SYS_madvise,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_set_robust_list,
    libc::SYS_sigaltstack,
];
/// An older call, which newer architectures do not have.
#[cfg(target_arch = "x86_64")]
const HERE: &[libc::c_long] = &[libc::SYS_poll];
#[cfg(not(target_arch = "x86_64"))]
const HERE: &[libc::c_long] = &[];
/// Calls of the runtime that fail with ENOSYS, after which it does without: glibc reads the number
/// of processors (malloc/arena.c), and makes a thread by clone(2) if there is no clone3, whose flags
/// a filter cannot read.
const MISSING: &[libc::c_long] = &[libc::SYS_clone3, libc::SYS_openat];
/// `_IO(0x12, 119)` (include/uapi/linux/fs.h): discard a range of a real disk.
const BLKDISCARD: u32 = 0x1277;
const FIONBIO: u32 = libc::FIONBIO as u32;

/// All bits of an argument.
const WHOLE: u32 = u32::MAX;

/// The filters for all threads of this process. The kernel applies all, and the strictest answer
/// counts (seccomp(2)).
pub struct Filter {
    missing: BpfProgram,
    others: BpfProgram,
}

impl Filter {
    /// Build the filter for the calling process.
    pub fn new() -> Result<Self, BackendError> {
        let [getfd, dup] = [libc::F_GETFD, libc::F_DUPFD_CLOEXEC].map(|command| command as u32);
        let [code, thread] = [libc::PROT_EXEC, libc::CLONE_THREAD].map(|flag| flag as u32);
        let some = [
            // Threads, but no process.
            rules(libc::SYS_clone, 0, thread, &[thread])?,
            // The second: Rust's check, in debug builds, that a descriptor is open when it is closed.
            rules(libc::SYS_fcntl, 1, WHOLE, &[dup, getfd])?,
            rules(libc::SYS_ioctl, 1, WHOLE, &[BLKDISCARD, FIONBIO])?,
            // No memory becomes executable.
            rules(libc::SYS_mmap, 2, code, &[0])?,
            rules(libc::SYS_mprotect, 2, code, &[0])?,
            // Names of threads.
            rules(libc::SYS_prctl, 0, WHOLE, &[libc::PR_SET_NAME as u32])?,
            // abort(3).
            rules(libc::SYS_tgkill, 0, WHOLE, &[std::process::id()])?,
        ];
        let always = [SERVING, RUNTIME, HERE, MISSING];
        let always = always
            .into_iter()
            .flatten()
            .map(|&number| (number, Vec::new()));
        let allowed = always.chain(some).collect();
        let missing = MISSING.iter().map(|&number| (number, Vec::new())).collect();
        let none = SeccompAction::Errno(libc::ENOSYS as u32);
        Ok(Self {
            missing: program(missing, none, SeccompAction::Allow)?,
            others: program(allowed, SeccompAction::Allow, SeccompAction::KillProcess)?,
        })
    }

    /// Enter the filters with all threads of this process, and give up the right to new privileges
    /// (`no_new_privs`). A kernel without filters changes nothing else.
    pub fn enter(&self) -> Result<(), seccompiler::Error> {
        let entered = seccompiler::apply_filter_all_threads(&self.missing)
            .and_then(|()| seccompiler::apply_filter_all_threads(&self.others));
        match entered {
            Err(seccompiler::Error::Seccomp(error))
                if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EINVAL)) =>
            {
                Ok(())
            }
            entered => entered,
        }
    }
}

type Rules = BTreeMap<libc::c_long, Vec<SeccompRule>>;

fn program(
    rules: Rules,
    listed: SeccompAction,
    other: SeccompAction,
) -> Result<BpfProgram, BackendError> {
    let target = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, other, listed, target)?.try_into()
}

/// Rules for the calls of which argument `index`, in the bits of `mask`, is one of `values`.
fn rules(
    number: libc::c_long,
    index: u8,
    mask: u32,
    values: &[u32],
) -> Result<(libc::c_long, Vec<SeccompRule>), BackendError> {
    let rule = |&value: &u32| {
        let compare = SeccompCmpOp::MaskedEq(mask.into());
        let size = SeccompCmpArgLen::Dword;
        SeccompRule::new(vec![SeccompCondition::new(
            index,
            size,
            compare,
            value.into(),
        )?])
    };
    Ok((number, values.iter().map(rule).collect::<Result<_, _>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{io::Read as _, os::fd::AsRawFd as _};

    /// Makes calls in a child that has entered the filter; returns the signal that killed it.
    fn killed_by(calls: &[[libc::c_long; 4]]) -> Option<i32> {
        let filter = Filter::new().unwrap();
        // SAFETY: the child makes system calls only, and ends with one.
        let child = unsafe { libc::fork() };
        assert!(child >= 0);
        if child == 0 {
            let is_in = filter.enter().is_ok();
            for &[number, first, second, third] in calls {
                // SAFETY: the arguments are numbers, null, or the address of a constant.
                let _ = unsafe { libc::syscall(number, first, second, third) };
            }
            // SAFETY: the call ends the child without its parent's handlers.
            unsafe { libc::_exit(i32::from(!is_in)) }
        }
        let mut status = 0;
        // SAFETY: the status lives until the call returns.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert!(libc::WIFSIGNALED(status) || libc::WEXITSTATUS(status) == 0);
        libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status))
    }

    #[test]
    fn what_is_open_works() {
        let (mut reading, writing) = std::io::pipe().unwrap();
        let text = c"content".as_ptr().expose_provenance() as libc::c_long;
        let into = libc::c_long::from(writing.as_raw_fd());
        let readable = libc::PROT_READ.into();
        let calls = [
            [libc::SYS_write, into, text, 7],
            [libc::SYS_mprotect, 0, 0, readable],
            [libc::SYS_openat, 0, 0, 0],
            [libc::SYS_close, into, 0, 0],
        ];
        assert_eq!(killed_by(&calls), None);
        drop(writing);
        let mut written = String::new();
        reading.read_to_string(&mut written).unwrap();
        assert_eq!(written, "content");
    }

    #[test]
    fn any_other_call_kills() {
        let executable = libc::PROT_EXEC.into();
        let others = [
            [libc::SYS_getppid, 0, 0, 0],
            [libc::SYS_openat2, 0, 0, 0],
            [libc::SYS_clone, libc::SIGCHLD.into(), 0, 0],
            [libc::SYS_unlinkat, 0, 0, 0],
            [libc::SYS_execve, 0, 0, 0],
            [libc::SYS_kill, libc::c_long::from(libc::c_int::MAX), 0, 0],
            [libc::SYS_socket, 0, 0, 0],
            [libc::SYS_io_uring_setup, 0, 0, 0],
            [libc::SYS_setuid, 0, 0, 0],
            [libc::SYS_ioctl, 0, libc::TIOCSTI as libc::c_long, 0],
            [libc::SYS_mprotect, 0, 0, executable],
            [libc::SYS_prctl, libc::PR_SET_DUMPABLE.into(), 1, 0],
            [libc::SYS_tgkill, 1, 1, 0],
        ];
        for call in others {
            assert_eq!(killed_by(&[call]), Some(libc::SIGSYS), "{call:?}");
        }
    }
}
