//! Small real recordings to be damaged. `make_seeds.py` records them.

use crate::damage::Damage;
use fscost_recording::{Event, Header, Mark, Op, Recording, Writer};
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

/// Limits of a short seed.
const SHORT_EVENTS: usize = 300;
const SHORT_BYTES: usize = 1 << 20;

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

/// Returns the beginning of each seed, up to its first measured step. Large writes of zeroes become
/// requests without content. An execution takes a tenth of the time of a whole seed.
pub fn short(family: &str) -> &'static [Seed] {
    static CUT: Mutex<Option<HashMap<String, &'static [Seed]>>> = Mutex::new(None);
    let mut cut = CUT.lock().unwrap_or_else(PoisonError::into_inner);
    let cut = cut.get_or_insert_default();
    let family = family.to_owned();
    cut.entry(family)
        .or_insert_with_key(|family| of(family).iter().map(Seed::cut).collect::<Vec<_>>().leak())
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

    /// Returns the seed up to its first step, or to a limit of events and content.
    fn cut(&self) -> Seed {
        let mut entries = Vec::new();
        let (mut bytes, mut marks) = (0, 0);
        for entry in &self.entries {
            let mut entry = entry.clone();
            if entry.event.op == Op::Write && entry.content.iter().all(|&byte| byte == 0) {
                entry.event.op = Op::WriteZeroes;
                entry.content.clear();
            }
            bytes += entry.content.len();
            marks += usize::from(entry.mark.is_some());
            if entries.len() >= SHORT_EVENTS || bytes > SHORT_BYTES {
                break;
            }
            entries.push(entry);
        }
        if std::env::var_os("FSCOST_FUZZ_PRINT").is_some() {
            let whole: usize = self.entries.iter().map(|entry| entry.content.len()).sum();
            eprintln!(
                "{} of {} events, {bytes} of {whole} bytes, {marks} marks",
                entries.len(),
                self.entries.len()
            );
        }
        Seed {
            header: self.header.clone(),
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
