//! Runs the kernel's code for sending a reply shortly before one is sent.
//!
//! After a millisecond of sleep, that code is no longer in the processor's caches, and the next
//! reply takes 20 µs longer than others.

use std::{
    io::{Read as _, Write as _},
    os::unix::net::UnixStream,
};

/// A private socket pair; none if the kernel refuses one, which only costs precision.
pub struct Rehearsal(Option<(UnixStream, UnixStream)>);

impl Rehearsal {
    pub fn new() -> Self {
        Self(UnixStream::pair().ok())
    }

    /// Send a byte through the pair.
    pub fn hold(&mut self) {
        if let Self(Some((from, to))) = self {
            // The pair holds one byte at most, so neither call waits.
            let _ = from.write_all(&[0]).and_then(|()| to.read_exact(&mut [0]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_stays_in_the_pair() {
        let mut rehearsal = Rehearsal::new();
        for _ in 0..3 {
            rehearsal.hold();
        }
        let (_, to) = rehearsal.0.as_ref().unwrap();
        to.set_nonblocking(true).unwrap();
        let left = (&mut &*to).read(&mut [0]);
        assert_eq!(left.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    }
}
