//! Names of this thread's descendants, as comm(5) shows them.

use crate::ring::{Naming, Ring};
use crate::{Result, on_each_cpu};
use std::collections::HashMap;

/// Names of threads, followed from its creation until it is dropped.
#[derive(Debug)]
pub struct Names {
    rings: Vec<Ring>,
    known: HashMap<u32, String>,
}

impl Names {
    /// Starts following this thread and every process that it starts from now on.
    pub fn follow() -> Result<Self> {
        Ok(Self {
            rings: on_each_cpu("names of processes", Ring::open_names)?,
            known: HashMap::new(),
        })
    }

    /// Returns the name that each thread had at a time, for times in ascending order since the
    /// previous call. The name is unknown if a ring was full.
    pub fn at(&mut self, asked: impl Iterator<Item = (u64, u32)>) -> Vec<Option<String>> {
        let mut changes = Vec::new();
        for ring in &mut self.rings {
            ring.take_names(|at_ns, naming| changes.push((at_ns, naming)));
        }
        changes.sort_by_key(|(at_ns, _)| *at_ns);
        let mut changes = changes.into_iter().peekable();
        let mut found = Vec::new();
        for (at_ns, thread) in asked {
            while let Some((_, naming)) = changes.next_if(|(changed_ns, _)| *changed_ns <= at_ns) {
                self.apply(naming);
            }
            found.push(self.known.get(&thread).cloned());
        }
        changes.for_each(|(_, naming)| self.apply(naming));
        found
    }

    fn apply(&mut self, naming: Naming) {
        match naming {
            Naming::Named { thread, name } => self.known.insert(thread, name),
            Naming::Forked { thread, by } => match self.known.get(&by).cloned() {
                Some(name) => self.known.insert(thread, name),
                // The number may be one that an earlier thread had.
                None => self.known.remove(&thread),
            },
        };
    }
}
