//! `fscost-agent tied PARENT COMMAND…`: becomes COMMAND, which the kernel kills when PARENT dies.
//!
//! QEMU has no such option, and a machine must not outlive the run that started it.

use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// Entry of the process.
pub fn main(arguments: &[String]) -> ExitCode {
    let [parent, program, rest @ ..] = arguments else {
        eprintln!("usage: fscost-agent tied PARENT COMMAND…");
        return ExitCode::from(2);
    };
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        eprintln!("fscost-agent tied: ask to die with the parent: {error}");
        return ExitCode::FAILURE;
    }
    // It may have died before the request.
    if getppid().map(|pid| pid.as_raw_nonzero().to_string()) != Some(parent.clone()) {
        eprintln!("fscost-agent tied: {parent} is not the parent");
        return ExitCode::FAILURE;
    }
    let error = Command::new(program).args(rest).exec();
    eprintln!("fscost-agent tied: {program}: {error}");
    ExitCode::FAILURE
}
