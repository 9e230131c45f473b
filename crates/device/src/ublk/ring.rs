//! The io_uring: commands to the driver, requests from it, and other descriptors that the server
//! waits for.

use super::protocol::{CtrlCmd, IoCmd};
use io_uring::{IoUring, cqueue, opcode, register::Restriction, squeue::Entry128, types};
use rustix::{
    fd::{AsRawFd as _, BorrowedFd},
    io::Errno,
    ioctl::Opcode,
};
use std::{io, time::Duration};
use zerocopy::IntoBytes as _;

/// A completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happened {
    /// A request arrived, or its command was refused with this error.
    Request { disk: u16, tag: u16, result: i32 },
    /// A control command ended.
    Commanded(i32),
    /// A descriptor is readable.
    Readable(Waited),
}

/// Descriptors to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// Messages of the agent.
    Agent = 1,
    /// Replies of modelled disks that are due.
    Replies = 2,
}

/// With the number of the command.
const COMMAND: u64 = 1 << 32;
const READABLE: u64 = 2 << 32;

/// One ring, used by one thread: the driver requires the commands of a queue to come from the same
/// thread.
///
/// It accepts the two kinds of entries below only, because filters of system calls do not see the
/// entries of a ring.
pub struct Ring {
    ring: IoUring<Entry128, cqueue::Entry>,
    /// Number of the last control command.
    commands: u32,
    /// The credentials of the ring's creator. The driver asks for CAP_SYS_ADMIN when it removes a
    /// device, which happens after this process has given up its privileges.
    creator: u16,
}

impl Ring {
    /// Create a ring with room for `requests` commands at once.
    pub fn new(requests: u32) -> io::Result<Self> {
        let ring: IoUring<_, _> = IoUring::builder().setup_r_disabled().build(requests)?;
        let creator = ring.submitter().register_personality()?;
        let mut allowed = [
            Restriction::sqe_op(opcode::UringCmd80::CODE),
            Restriction::sqe_op(opcode::PollAdd::CODE),
        ];
        ring.submitter().register_restrictions(&mut allowed)?;
        ring.submitter().register_enable_rings()?;
        Ok(Self {
            ring,
            commands: 0,
            creator,
        })
    }

    /// Send a control command. The end of an earlier one is not reported any more.
    ///
    /// # Safety
    ///
    /// Memory that `command` points to must live, and be left alone, until [`Happened::Commanded`].
    pub unsafe fn command(&mut self, control: BorrowedFd<'_>, code: Opcode, command: &CtrlCmd) {
        let mut bytes = [0; 80];
        bytes[..size_of::<CtrlCmd>()].copy_from_slice(command.as_bytes());
        self.commands = self.commands.wrapping_add(1);
        let entry = opcode::UringCmd80::new(types::Fd(control.as_raw_fd()), code)
            .cmd(bytes)
            .build()
            .personality(self.creator)
            .user_data(COMMAND | u64::from(self.commands));
        // SAFETY: the caller's promise.
        unsafe { self.push(&entry) };
    }

    /// Send a command of a request.
    pub fn request(&mut self, device: BorrowedFd<'_>, code: Opcode, disk: u16, command: IoCmd) {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(command.as_bytes());
        let entry = opcode::UringCmd16::new(types::Fd(device.as_raw_fd()), code)
            .cmd(bytes)
            .build()
            .user_data(u64::from(disk) << 16 | u64::from(command.tag));
        // SAFETY: the command holds no address (UBLK_F_USER_COPY).
        unsafe { self.push(&entry.into()) };
    }

    /// Report once when a descriptor is readable.
    pub fn poll(&mut self, what: Waited, descriptor: BorrowedFd<'_>) {
        let entry = opcode::PollAdd::new(types::Fd(descriptor.as_raw_fd()), libc::POLLIN as u32)
            .build()
            .user_data(READABLE | what as u64);
        // SAFETY: the entry holds no address.
        unsafe { self.push(&entry.into()) };
    }

    /// # Safety
    ///
    /// Memory that `entry` points to must live until its completion.
    unsafe fn push(&mut self, entry: &Entry128) {
        loop {
            // SAFETY: the caller's promise.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return;
            }
            // The queue is full: the kernel takes the entries in it.
            let _ = self.ring.submit();
        }
    }

    /// Submit, and wait for an event; returns without one after `limit`.
    pub fn wait(&mut self, limit: Duration, happened: &mut Vec<Happened>) -> Result<(), Errno> {
        if self.ring.completion().is_empty() {
            let limit = types::Timespec::from(limit);
            let arguments = types::SubmitArgs::new().timespec(&limit);
            match self.ring.submitter().submit_with_args(1, &arguments) {
                Ok(_) => {}
                Err(error) => match Errno::from_io_error(&error) {
                    Some(Errno::TIME | Errno::INTR | Errno::BUSY | Errno::AGAIN) => {}
                    other => return Err(other.unwrap_or(Errno::IO)),
                },
            }
        }
        let last = COMMAND | u64::from(self.commands);
        for entry in self.ring.completion() {
            let data = entry.user_data();
            if data & COMMAND == 0 || data == last {
                happened.push(meaning(data, entry.result()));
            }
        }
        Ok(())
    }
}

fn meaning(data: u64, result: i32) -> Happened {
    match data {
        _ if data & COMMAND != 0 => Happened::Commanded(result),
        _ if data & READABLE != 0 => Happened::Readable(match data & 3 {
            1 => Waited::Agent,
            _ => Waited::Replies,
        }),
        _ => Happened::Request {
            disk: (data >> 16) as u16,
            tag: data as u16,
            result,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::AsFd as _;
    use std::io::Write as _;

    #[test]
    fn completions_say_what_they_are_about() {
        let request = Happened::Request {
            disk: 3,
            tag: 127,
            result: -19,
        };
        assert_eq!(meaning(3 << 16 | 127, -19), request);
        assert_eq!(meaning(COMMAND | 3, 0), Happened::Commanded(0));
        assert_eq!(meaning(READABLE | 1, 1), Happened::Readable(Waited::Agent));
        assert_eq!(
            meaning(READABLE | 2, 1),
            Happened::Readable(Waited::Replies)
        );
    }

    #[test]
    fn a_ring_tells_what_is_readable_and_returns_at_its_limit() {
        let Ok(mut ring) = Ring::new(8) else {
            eprintln!("skipped: no io_uring here");
            return;
        };
        let (reading, mut writing) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut happened = Vec::new();
        ring.poll(Waited::Agent, reading.as_fd());
        ring.wait(Duration::from_millis(1), &mut happened).unwrap();
        assert_eq!(happened, []);
        writing.write_all(b"x").unwrap();
        ring.wait(Duration::from_secs(10), &mut happened).unwrap();
        assert_eq!(happened, [Happened::Readable(Waited::Agent)]);
    }

    #[test]
    fn a_ring_reports_the_end_of_the_last_command_only() {
        let Ok(mut ring) = Ring::new(8) else {
            eprintln!("skipped: no io_uring here");
            return;
        };
        let nothing = std::fs::File::open("/dev/null").unwrap();
        for code in [super::super::protocol::DEL_DEV; 2] {
            // SAFETY: the command holds no address.
            unsafe { ring.command(nothing.as_fd(), code, &CtrlCmd::default()) };
        }
        let mut happened = Vec::new();
        ring.ring.submit_and_wait(2).unwrap();
        ring.wait(Duration::from_secs(10), &mut happened).unwrap();
        assert!(
            matches!(happened[..], [Happened::Commanded(_)]),
            "{happened:?}"
        );
    }

    #[test]
    fn a_ring_refuses_other_operations() {
        let Ok(mut ring) = Ring::new(8) else {
            eprintln!("skipped: no io_uring here");
            return;
        };
        let nothing: Entry128 = opcode::Nop::new().build().into();
        // SAFETY: the entry holds no address.
        unsafe { ring.push(&nothing.user_data(COMMAND)) };
        let mut happened = Vec::new();
        ring.wait(Duration::from_secs(10), &mut happened).unwrap();
        assert_eq!(happened, [Happened::Commanded(-libc::EACCES)]);
    }
}
