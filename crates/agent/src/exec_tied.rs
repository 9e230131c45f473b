//! `fscost-agent tied PARENT [OPTION…] -- COMMAND…`: becomes COMMAND, which the kernel kills when
//! PARENT dies.
//!
//! QEMU has no such option, and a machine must not outlive the run that started it. The options
//! confine the command ([`crate::confine`]).

use crate::confine;
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// Entry point of the process.
pub fn main(arguments: &[String]) -> ExitCode {
    let [parent, words @ ..] = arguments else {
        eprintln!("usage: fscost-agent tied PARENT [OPTION…] -- COMMAND…");
        return ExitCode::from(2);
    };
    let (confinement, command) = match confine::parse(words) {
        Ok((confinement, [program, rest @ ..])) => (confinement, (program, rest)),
        Ok(_) => {
            eprintln!("fscost-agent tied: no command");
            return ExitCode::from(2);
        }
        Err(error) => {
            eprintln!("fscost-agent tied: {}", error.paragraph());
            return ExitCode::from(2);
        }
    };
    // A change of user clears the signal (prctl(2)), so it is requested twice: nothing here may
    // outlive the parent.
    let confined = tie(parent)
        .and_then(|()| confinement.enter().map_err(|error| error.paragraph()))
        .and_then(|()| tie(parent));
    if let Err(error) = confined {
        eprintln!("fscost-agent tied: {error}");
        return ExitCode::FAILURE;
    }
    let (program, rest) = command;
    let error = Command::new(program).args(rest).exec();
    eprintln!("fscost-agent tied: {program}: {error}");
    ExitCode::FAILURE
}

fn tie(parent: &str) -> Result<(), String> {
    rustix::thread::set_no_new_privs(true)
        .and_then(|()| set_parent_process_death_signal(Some(Signal::KILL)))
        .map_err(|error| format!("set the parent-death signal: {error}"))?;
    // The parent may have died before the request.
    if getppid()
        .map(|pid| pid.as_raw_nonzero().to_string())
        .as_deref()
        == Some(parent)
    {
        Ok(())
    } else {
        Err(format!("{parent} is not the parent"))
    }
}
