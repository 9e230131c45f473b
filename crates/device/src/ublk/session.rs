//! Serves the requests of all ublk devices of a cell in one thread.

use super::{
    command::{Control, outcome},
    device::{DEPTH, Device},
    guard::Guard,
    protocol as p,
    replies::{Due, Replies},
    ring::{Happened, Waited},
};
use crate::{
    backend::{Backend, Request},
    carry_out::{Content, carry_out},
    errno,
    timing::Timing,
};
use fscost_recording::{DiskInfo, MAX_REQUEST_BYTES, Op};
use rustix::{
    fd::{AsFd as _, BorrowedFd},
    io::Errno,
    ioctl::Opcode,
};
use std::{path::PathBuf, sync::Arc, time::Duration};

/// Idle time until [`Step::is_idle`].
const IDLE: Duration = Duration::from_millis(100);
/// `UBLK_IO_RES_ABORT`: the device is being removed.
const ABORTED: i32 = -libc::ENODEV;

/// Result of one wait.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// True if nothing happened for a while.
    pub is_idle: bool,
    /// True if the agent has sent a message.
    pub has_message: bool,
}

/// The devices, and the ring that delivers their requests.
pub struct Session {
    control: Control,
    devices: Vec<Device>,
    timing: Option<Arc<Timing>>,
    replies: Arc<Replies>,
    happened: Vec<Happened>,
    commanded: Option<i32>,
    content: Vec<u8>,
    guard: Option<Guard>,
}

impl Session {
    /// Create a device for each disk. The devices receive no requests until [`start`](Self::start).
    pub fn new(mut control: Control, disks: &[DiskInfo]) -> Result<Self, String> {
        control.sweep();
        let guard = Guard::start()
            .map_err(|error| format!("starting the process that removes devices: {error}"))?;
        let replies = Replies::new().map_err(|errno| format!("making an eventfd: {errno}"))?;
        let mut session = Self {
            control,
            devices: Vec::new(),
            timing: None,
            replies: Arc::new(replies),
            happened: Vec::new(),
            commanded: None,
            content: vec![0; MAX_REQUEST_BYTES],
            guard: Some(guard),
        };
        for (number, disk) in (0..).zip(disks) {
            match Device::add(&mut session.control, number, disk) {
                Ok(device) => session.devices.push(device),
                Err(error) => {
                    session.remove_all();
                    return Err(error);
                }
            }
        }
        Ok(session)
    }

    /// Start the devices while serving them. Replies of disks with a model wait for the model.
    /// Returns the device nodes, in the order of the disks.
    pub fn start(
        &mut self,
        backend: &mut dyn Backend,
        timing: Option<Arc<Timing>>,
    ) -> Result<Vec<PathBuf>, Errno> {
        self.timing = timing;
        self.control
            .ring
            .poll(Waited::Replies, self.replies.event.as_fd());
        for index in 0..self.devices.len() {
            self.devices[index].fetch_all(&mut self.control.ring);
            // Meanwhile the kernel may scan for partitions.
            self.run(backend, p::START_DEV, self.devices[index].number)?;
        }
        let node = |device: &Device| format!("/dev/ublkb{}", device.number).into();
        Ok(self.devices.iter().map(node).collect())
    }

    /// Report once when the agent has sent a message.
    pub fn listen(&mut self, agent: BorrowedFd<'_>) {
        self.control.ring.poll(Waited::Agent, agent);
    }

    /// Wait for an event, and handle it.
    pub fn step(&mut self, backend: &mut dyn Backend) -> Result<Step, Errno> {
        let mut happened = std::mem::take(&mut self.happened);
        self.control.ring.wait(IDLE, &mut happened)?;
        let mut step = Step {
            is_idle: happened.is_empty(),
            has_message: false,
        };
        for each in happened.drain(..) {
            match each {
                Happened::Request { disk, tag, result } => {
                    self.arrived(backend, disk, tag, result)?;
                }
                Happened::Commanded(result) => self.commanded = Some(result),
                Happened::Readable(Waited::Agent) => step.has_message = true,
                Happened::Readable(Waited::Replies) => {
                    for Due { disk, tag, result } in self.replies.take() {
                        self.commit(disk, tag, result);
                    }
                    self.control
                        .ring
                        .poll(Waited::Replies, self.replies.event.as_fd());
                }
            }
        }
        self.happened = happened;
        Ok(step)
    }

    /// Remove the devices; requests that still arrive are served.
    pub fn stop(&mut self, backend: &mut dyn Backend) -> Result<(), Errno> {
        // Nothing drives the models any more, so no reply may wait for one.
        self.timing = None;
        for index in 0..self.devices.len() {
            self.run(backend, p::STOP_DEV, self.devices[index].number)?;
            while self.devices[index].fetching > 0 {
                self.step(backend)?;
            }
        }
        self.remove_all();
        if let Some(guard) = self.guard.take() {
            guard.end();
        }
        Ok(())
    }

    fn remove_all(&mut self) {
        for device in self.devices.drain(..) {
            let number = device.number;
            // The driver waits until no process has the character device open or mapped.
            drop(device);
            let _ = self.control.command(p::DEL_DEV, number);
        }
    }

    /// Run a control command during which requests may have to be served.
    fn run(&mut self, backend: &mut dyn Backend, code: Opcode, device: u32) -> Result<(), Errno> {
        self.commanded = None;
        self.control.begin(code, device);
        loop {
            self.step(backend)?;
            if let Some(result) = self.commanded.take() {
                return outcome(result);
            }
        }
    }

    fn arrived(
        &mut self,
        backend: &mut dyn Backend,
        disk: u16,
        tag: u16,
        result: i32,
    ) -> Result<(), Errno> {
        let submit_ns = backend.clock().now_ns();
        let device = self
            .devices
            .get_mut(usize::from(disk))
            .ok_or(Errno::INVAL)?;
        device.fetching -= 1;
        if result == ABORTED {
            return Ok(());
        }
        outcome(result)?;
        match device.asked(tag, submit_ns) {
            Ok(request) => self.serve(backend, tag, request),
            Err(errno) => self.commit(disk, tag, -errno.raw_os_error()),
        }
        Ok(())
    }

    fn serve(&mut self, backend: &mut dyn Backend, tag: u16, mut request: Request) {
        let disk = request.disk;
        let device = &self.devices[usize::from(disk)];
        let length = request.length as usize;
        if request.op == Op::Write
            && let Err(errno) = device.read_content(tag, &mut backend.space()[..length])
        {
            // The device is being removed: no process waits for the write.
            return self.commit(disk, tag, -errno.raw_os_error());
        }
        let timing = self.timing.clone();
        let content = match request.op {
            Op::Read => Content::Buffer(&mut self.content[..length]),
            _ => Content::InPlace,
        };
        let parts = std::slice::from_mut(&mut request);
        let (done, ticket) = carry_out(backend, timing.as_deref(), parts, content);
        let mut done = done.map_err(errno::of_recording);
        if done.is_ok() && request.op == Op::Read {
            done = device.write_content(tag, &self.content[..length]);
        }
        let result = match (done, request.op) {
            (Err(errno), _) => -errno.raw_os_error(),
            (Ok(()), Op::Read | Op::Write) => length as i32,
            (Ok(()), _) => 0,
        };
        match (timing, ticket) {
            (Some(timing), Some(ticket)) => {
                let replies = Arc::clone(&self.replies);
                let due = Due { disk, tag, result };
                timing.reply(ticket, Box::new(move || replies.put(due)));
            }
            _ => self.commit(disk, tag, result),
        }
    }

    fn commit(&mut self, disk: u16, tag: u16, result: i32) {
        if let Some(device) = self.devices.get_mut(usize::from(disk)) {
            device.commit(&mut self.control.ring, tag, result);
        }
    }

    /// Returns the number of ring entries that the requests of `disks` disks need.
    pub fn requests(disks: usize) -> u32 {
        u32::from(DEPTH) * disks as u32
    }
}
