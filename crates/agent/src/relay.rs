//! Passes the events of `init` on, line by line, and keeps back the last one.
//!
//! `init` can be killed in the middle of a line; and a cell is done only when its processes have
//! ended well.

use serde_json::Value;
use std::io::{self, Write};

/// The events so far.
#[derive(Debug, Default)]
pub struct Relay {
    unfinished: Vec<u8>,
    last: Option<Value>,
}

impl Relay {
    /// Takes bytes from `init`; passes on every line that they complete.
    pub fn take(&mut self, bytes: &[u8], out: &mut impl Write) -> io::Result<()> {
        self.unfinished.extend_from_slice(bytes);
        while let Some(end) = self.unfinished.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.unfinished.drain(..=end).collect();
            match final_event(&line) {
                // The first is the reason; whatever follows, follows from it.
                Some(event) => self.last = self.last.take().or(Some(event)),
                None => out.write_all(&line)?,
            }
        }
        out.flush()
    }

    /// `done` or `failed`, once it has come.
    pub fn last(&self) -> Option<&Value> {
        self.last.as_ref()
    }

    /// Takes it.
    pub fn into_last(self) -> Option<Value> {
        self.last
    }
}

fn final_event(line: &[u8]) -> Option<Value> {
    // Events say what they are first; the long ones (pauses) need not be parsed.
    let is_final =
        line.starts_with(br#"{"event":"done""#) || line.starts_with(br#"{"event":"failed""#);
    is_final
        .then(|| serde_json::from_slice(line).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_pass_and_the_last_event_is_kept_back() {
        let mut relay = Relay::default();
        let mut out = Vec::new();
        relay.take(b"{\"event\":\"atta", &mut out).unwrap();
        assert!(out.is_empty());
        relay
            .take(
                b"ched\"}\n{\"event\":\"failed\",\"kind\":\"x\"}\n{\"event\":\"interv",
                &mut out,
            )
            .unwrap();
        assert_eq!(out, b"{\"event\":\"attached\"}\n");
        assert_eq!(relay.last().unwrap()["kind"], "x");
        relay.take(b"\n{\"event\":\"done\"}\n", &mut out).unwrap();
        assert_eq!(relay.into_last().unwrap()["event"], "failed");
    }
}
