//! Small real recordings to be damaged. `make_seeds.py` records them.

use crate::damage::Damage;
use fscost_recording::{Event, Header, Mark, Op, Recording, Writer};
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

/// A recording in memory.
#[derive(Clone)]
pub struct Seed {
    header: Header,
    /// Entries in order of completion.
    pub entries: Vec<Entry>,
}

/// One event and its content.
#[derive(Clone)]
pub struct Entry {
    pub event: Event,
    pub content: Vec<u8>,
    mark: Option<Mark>,
}

/// Returns the seeds of a family, which are read once.
pub fn of(family: &str) -> &'static [Seed] {
    static READ: Mutex<Option<HashMap<String, &'static [Seed]>>> = Mutex::new(None);
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    let read = read.get_or_insert_default();
    if let Some(seeds) = read.get(family) {
        return seeds;
    }
    let seeds: Vec<Seed> = files(family).iter().map(|path| Seed::read(path)).collect();
    assert!(seeds.len() >= 3, "{family}: {} seeds", seeds.len());
    let seeds: &'static [Seed] = Box::leak(seeds.into_boxed_slice());
    read.insert(family.to_owned(), seeds);
    seeds
}

/// Returns the seed files of a family. Those of ext are its test data.
fn files(family: &str) -> Vec<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = match family {
        "ext" => here.join("../crates/explain/tests/data/ext"),
        _ => here.join("seeds").join(family),
    };
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|entry| entry.expect("a folder that can be read").path())
        .filter(|path| path.extension().is_some_and(|e| e == "fscost"))
        .collect();
    files.sort();
    files
}

impl Seed {
    fn read(path: &Path) -> Seed {
        let recording = Recording::open(path).expect("a seed");
        let mut entries = Vec::new();
        let walk = recording.for_each_frame(true, |_, frame| {
            for event in &frame.events {
                let is_mark = event.op == Op::Mark;
                entries.push(Entry {
                    event: Event {
                        content_offset: 0,
                        ..*event
                    },
                    content: if is_mark {
                        Vec::new()
                    } else {
                        frame.content_of(event).to_vec()
                    },
                    mark: if is_mark {
                        Some(frame.mark_of(event)?)
                    } else {
                        None
                    },
                });
            }
            Ok(true)
        });
        walk.expect("a whole seed");
        Seed {
            header: recording.header().clone(),
            entries,
        }
    }

    /// Returns the seed with this damage.
    pub fn with(&self, damage: &Damage) -> Seed {
        let mut damaged = self.clone();
        for mutation in &damage.mutations {
            mutation.apply(&mut damaged);
        }
        damaged
    }

    /// Writes the seed as a recording. Requests that cannot be recorded, such as those beyond the
    /// disk's end, are omitted.
    pub fn write(&self, path: &Path) {
        let mut writer = Writer::create(path, &self.header).expect("space for a recording");
        for entry in &self.entries {
            if let Some(mark) = &entry.mark {
                writer.mark(mark, entry.event.complete_ns).expect("a mark");
                continue;
            }
            writer.space()[..entry.content.len()].copy_from_slice(&entry.content);
            let _ = writer.append(entry.event);
        }
        writer.finish().expect("space for a recording");
    }
}
