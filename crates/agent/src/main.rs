//! `fscost-agent` runs one cell (profile × workload × repetition × seed) beside the workload.
//!
//! The contract is `docs/cell-protocol.md`: a plan on standard input, events on standard output.
//! The agent never interprets a file system; every path, command and option is in the plan.

mod background;
mod btrfs_devices;
mod btrfs_space;
mod cell;
mod child;
mod confine;
mod control;
mod control_proxy;
mod counters;
mod cpu;
mod disks;
mod error;
mod event;
mod exec_tied;
mod guest;
mod handoff;
mod init;
mod klog;
mod loopdev;
mod mount;
mod mount_attributes;
mod namespace;
mod output;
mod plan;
mod port;
mod probe;
mod process;
mod reap;
mod relay;
mod sandbox;
mod schedule;
mod spinner;
mod step;
mod step_filter;
mod supervisor;
mod sync_calls;
mod usage;
mod watchdog;

use std::process::ExitCode;

fn main() -> ExitCode {
    // The kernel passes its first process the words of the command line that the kernel itself does
    // not use (`spinner::ARGUMENT`).
    let mode = match std::process::id() {
        1 if std::env::args().next().as_deref() == Some("/init") => Some("guest".to_owned()),
        _ => std::env::args().nth(1),
    };
    match mode.as_deref() {
        Some("run") => supervisor::main(),
        Some("init") => init::main(),
        Some("guest") => guest::main(),
        Some("forward") => control_proxy::main(&std::env::args().skip(2).collect::<Vec<_>>()),
        Some("tied") => exec_tied::main(&std::env::args().skip(2).collect::<Vec<_>>()),
        Some(mount_attributes::HOLD) => mount_attributes::hold(),
        Some("--version") => {
            println!("fscost-agent {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!(
                "usage: fscost-agent run < PLAN.json > EVENTS.jsonl    (see docs/cell-protocol.md)"
            );
            ExitCode::from(2)
        }
    }
}
