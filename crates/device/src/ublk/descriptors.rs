//! Request descriptors of a device, in memory that the driver writes and this process reads.

use super::protocol::IoDesc;
use rustix::{
    fd::BorrowedFd,
    io::Errno,
    mm::{MapFlags, ProtFlags, mmap, munmap},
};

const PAGE_BYTES: usize = 4096;

/// The mapped descriptors of queue 0.
pub struct Descriptors {
    memory: *mut libc::c_void,
    depth: u16,
}

// SAFETY: the memory is ours alone until it is dropped, and nothing in it belongs to a thread.
unsafe impl Send for Descriptors {}

impl Descriptors {
    /// Map the descriptors of a character device.
    pub fn map(device: BorrowedFd<'_>, depth: u16) -> Result<Self, Errno> {
        // SAFETY: the kernel chooses where; the mapping ends in `drop`.
        let memory = unsafe {
            mmap(
                std::ptr::null_mut(),
                bytes(depth),
                ProtFlags::READ,
                MapFlags::SHARED,
                device,
                0,
            )
        }?;
        Ok(Self { memory, depth })
    }

    /// Returns request `tag`. Valid only between its arrival and its reply.
    pub fn of(&self, tag: u16) -> Option<IoDesc> {
        if tag >= self.depth {
            return None;
        }
        // SAFETY: the mapping holds `depth` descriptors, aligned; the driver writes this one no
        // more until its request is answered.
        Some(unsafe {
            self.memory
                .cast::<IoDesc>()
                .add(usize::from(tag))
                .read_volatile()
        })
    }
}

impl Drop for Descriptors {
    fn drop(&mut self) {
        // SAFETY: the memory that `map` mapped; nobody keeps a reference into it.
        let _ = unsafe { munmap(self.memory, bytes(self.depth)) };
    }
}

fn bytes(depth: u16) -> usize {
    (usize::from(depth) * size_of::<IoDesc>()).next_multiple_of(PAGE_BYTES)
}
