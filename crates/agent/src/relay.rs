//! Forwards the events of `init` line by line, and holds back the last one.
//!
//! `init` can be killed in the middle of a line. A cell is complete only once its processes have
//! ended successfully.

use serde_json::Value;
use std::io::{self, Write};

/// Events received so far.
#[derive(Debug, Default)]
pub struct Relay {
    unfinished: Vec<u8>,
    /// `done` or `failed`, once received.
    pub last: Option<Value>,
}

impl Relay {
    /// Takes bytes from `init`; forwards every line that they complete.
    pub fn take(&mut self, bytes: &[u8], out: &mut impl Write) -> io::Result<()> {
        self.unfinished.extend_from_slice(bytes);
        while let Some(end) = self.unfinished.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.unfinished.drain(..=end).collect();
            match final_event(&line) {
                // The first final event is the reason; later ones result from it.
                Some(event) => self.last = self.last.take().or(Some(event)),
                None => out.write_all(&line)?,
            }
        }
        out.flush()
    }
}

fn final_event(line: &[u8]) -> Option<Value> {
    // Events begin with their type, so long ones (pauses) need not be parsed.
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
        assert_eq!(relay.last.as_ref().unwrap()["kind"], "x");
        relay.take(b"\n{\"event\":\"done\"}\n", &mut out).unwrap();
        assert_eq!(relay.last.unwrap()["event"], "failed");
    }
}
