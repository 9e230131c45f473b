//! System calls that steps of the native lab give up.
//!
//! Steps keep CAP_SYS_ADMIN, which mounts, quotas and snapshots need. It implies more than that:
//! programs in the kernel, which can read all of its memory (CAP_BPF and CAP_PERFMON,
//! capabilities(7)), swap on a disk that is taken away later, and files by handle, past every
//! mount. Keys have no namespace (keyrings(7)). A real-time thread starves the host.

use crate::error::{Context, Result};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, sock_filter,
};
use std::io;

/// System calls that fail with EPERM.
const DENIED: &[libc::c_long] = &[
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_finit_module,
    libc::SYS_init_module,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_open_by_handle_at,
    libc::SYS_perf_event_open,
    libc::SYS_request_key,
    // It takes the policy in memory, which a filter cannot read.
    libc::SYS_sched_setattr,
    libc::SYS_swapoff,
    libc::SYS_swapon,
];
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const DENIED_HERE: &[libc::c_long] = &[libc::SYS_kexec_file_load];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const DENIED_HERE: &[libc::c_long] = &[];

/// Policies of real time (sched(7)), and the bits of the argument that hold the policy: all but
/// SCHED_RESET_ON_FORK.
const REAL_TIME: [libc::c_int; 3] = [libc::SCHED_FIFO, libc::SCHED_RR, libc::SCHED_DEADLINE];
const POLICY: u64 = !(libc::SCHED_RESET_ON_FORK as u32) as u64;
/// First number of x32, the second set of numbers for most calls of x86-64 (syscall(2)).
const X32: libc::c_long = if cfg!(target_arch = "x86_64") {
    0x4000_0000
} else {
    0
};

/// The filter of a step. A program of another architecture, such as i386, is killed: its calls have
/// other numbers.
#[derive(Debug)]
pub struct StepFilter {
    program: BpfProgram,
}

impl StepFilter {
    /// Builds the filter, before the fork.
    pub fn new() -> Result<Self> {
        let filter = || -> std::result::Result<BpfProgram, seccompiler::BackendError> {
            let real_time = REAL_TIME.map(|policy| {
                let is_policy = SeccompCondition::new(
                    1,
                    SeccompCmpArgLen::Dword,
                    SeccompCmpOp::MaskedEq(POLICY),
                    policy as u64,
                )?;
                SeccompRule::new(vec![is_policy])
            });
            let real_time = real_time
                .into_iter()
                .collect::<std::result::Result<Vec<_>, _>>()?;
            let denied = DENIED.iter().chain(DENIED_HERE);
            let rules = denied
                .map(|&number| (number, Vec::new()))
                .chain([(libc::SYS_sched_setscheduler, real_time)])
                .flat_map(|(number, rules)| [(number, rules.clone()), (number | X32, rules)]);
            let denial = SeccompAction::Errno(libc::EPERM as u32);
            let target = std::env::consts::ARCH.try_into()?;
            SeccompFilter::new(rules.collect(), SeccompAction::Allow, denial, target)?.try_into()
        };
        let program = filter().internal(|| "build the filter of system calls")?;
        Ok(Self { program })
    }

    /// Enters the filter and a session keyring of its own, between fork and exec. A kernel without
    /// keys or filters changes nothing. Where keyctl is denied (Docker's default), so are keys.
    ///
    /// Not with `seccompiler::apply_filter`, which also sets no_new_privs: the step has
    /// CAP_SYS_ADMIN, so it needs no such flag, and programs such as sudo work as elsewhere.
    pub fn enter(&self) -> io::Result<()> {
        let filter = libc::sock_fprog {
            len: self.program.len() as u16,
            filter: self.program.as_ptr().cast_mut().cast::<libc::sock_filter>(),
        };
        const _: () = assert!(size_of::<sock_filter>() == size_of::<libc::sock_filter>());
        // SAFETY: a null name asks for a new keyring.
        let joined = unsafe {
            libc::syscall(
                libc::SYS_keyctl,
                libc::KEYCTL_JOIN_SESSION_KEYRING,
                std::ptr::null::<libc::c_char>(),
            )
        };
        unless(&[libc::ENOSYS, libc::EINVAL, libc::EPERM], joined)?;
        // SAFETY: the kernel copies the program, which lives until the call returns, and whose
        // instructions have the layout of the kernel's.
        let filtered = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                0,
                &raw const filter,
            )
        };
        unless(&[libc::ENOSYS, libc::EINVAL], filtered)
    }
}

/// The error of a system call that has just returned, unless it is one of these. Allocates nothing.
fn unless(harmless: &[libc::c_int], result: libc::c_long) -> io::Result<()> {
    if result >= 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        error
            if error
                .raw_os_error()
                .is_some_and(|errno| harmless.contains(&errno)) =>
        {
            Ok(())
        }
        error => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    /// Starts a program in the filter of a step, where one system call already fails with `errno`.
    fn started(call: libc::c_long, errno: libc::c_int) -> io::Result<bool> {
        let refusing = SeccompFilter::new(
            [(call, Vec::new())].into(),
            SeccompAction::Allow,
            SeccompAction::Errno(errno as u32),
            std::env::consts::ARCH.try_into().unwrap(),
        );
        let refusing: BpfProgram = refusing.unwrap().try_into().unwrap();
        let filter = StepFilter::new().unwrap();
        let mut command = Command::new("true");
        let enter = move || {
            seccompiler::apply_filter(&refusing).map_err(io::Error::other)?;
            filter.enter()
        };
        // SAFETY: system calls only, as long as they succeed.
        unsafe { command.pre_exec(enter) };
        Ok(command.status()?.success())
    }

    #[test]
    fn a_container_may_deny_keyrings_but_no_filter() {
        assert!(started(libc::SYS_keyctl, libc::EPERM).unwrap());
        assert!(started(libc::SYS_keyctl, libc::ENOSYS).unwrap());
        assert!(started(libc::SYS_seccomp, libc::ENOSYS).unwrap());
        let error = started(libc::SYS_keyctl, libc::EDQUOT).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EDQUOT));
        let error = started(libc::SYS_seccomp, libc::EPERM).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EPERM));
    }
}
