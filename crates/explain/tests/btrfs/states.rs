//! A file system taken through a series of states, and a recording of the same series: each state's
//! changed blocks, the superblock last.

use fscost_recording::{DiskInfo, Event, Header, Mark, Op, Recording, Stripped, Writer};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const STEP: usize = 16384;
const SUPERS: [u64; 2] = [64 << 10, 64 << 20];

/// Images in order, and the paths of every inode.
pub struct States {
    pub folder: tempfile::TempDir,
    pub images: Vec<PathBuf>,
    pub names: HashSet<(u64, String)>,
    size_bytes: u64,
    /// Writes since the previous image, for each image.
    writes: Vec<Vec<(u64, Vec<u8>)>>,
}

impl States {
    /// Makes the states. Prints a message and returns `None` if this machine cannot.
    pub fn make(mount_options: &str, mkfs_flags: &[&str]) -> Option<States> {
        let folder = tempfile::tempdir().unwrap();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/btrfs/steps.sh");
        let made = Command::new("unshare")
            .args(["--mount", "bash", script])
            .args([
                folder.path().join("disk.img").as_os_str(),
                folder.path().as_os_str(),
            ])
            .arg(mount_options)
            .args(mkfs_flags)
            .output();
        match made {
            Ok(output) if output.status.success() => {}
            other => {
                eprintln!("SKIPPED, because btrfs cannot be made and mounted here: {other:?}");
                assert!(std::env::var_os("FSCOST_REQUIRE_ROOT_TESTS").is_none());
                return None;
            }
        }
        let mut files: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|e| e.unwrap().path())
            .collect();
        files.sort();
        let with = |extension: &'static str| {
            files
                .iter()
                .filter(move |f| f.extension().is_some_and(|e| e == extension))
        };
        let names = with("names").flat_map(|file| {
            let text = fs::read_to_string(file).unwrap();
            text.lines()
                .map(|l| l.split_once('\t').unwrap())
                .map(|(i, p)| (i.parse().unwrap(), p.to_owned()))
                .collect::<Vec<_>>()
        });
        let names = names.collect();
        let images = with("img").filter(|f| !f.ends_with("disk.img"));
        let images: Vec<_> = images.cloned().collect();
        let size_bytes = fs::metadata(&images[0]).unwrap().len();
        let writes = writes_between(&images, size_bytes);
        Some(States {
            folder,
            images,
            names,
            size_bytes,
            writes,
        })
    }

    /// Returns the recording, with a mark named after each state before its writes. The first state
    /// holds the writes of mkfs.
    pub fn recording(&self) -> Recording {
        self.recording_with("recording", |_| ())
    }

    /// Returns the same recording, with each write's content changed after the first state.
    pub fn recording_with(&self, name: &str, mut change: impl FnMut(&mut [u8])) -> Recording {
        let path = self.folder.path().join(name);
        let disk = DiskInfo {
            name: "main".into(),
            size_bytes: self.size_bytes,
            logical_block_bytes: 512,
            physical_block_bytes: 4096,
        };
        let header = Header {
            begin_unix_ns: 0,
            disks: vec![disk],
            stripped: Stripped::No,
        };
        let mut writer = Writer::create(&path, &header).unwrap();
        for (number, image) in self.images.iter().enumerate() {
            let mark = |name: &str| Mark {
                name: name.into(),
                detail: Default::default(),
            };
            if number == 1 {
                writer.mark(&mark("mount"), 0).unwrap();
            }
            writer.mark(&mark(&state_name(image)), 0).unwrap();
            for (offset, bytes) in &self.writes[number] {
                let space = &mut writer.space()[..bytes.len()];
                space.copy_from_slice(bytes);
                if number > 0 {
                    change(space);
                }
                let event = Event {
                    submit_ns: 0,
                    complete_ns: 0,
                    offset: *offset,
                    length: bytes.len() as u64,
                    content_offset: 0,
                    disk: 0,
                    op: Op::Write,
                    fua: false,
                };
                writer.append(event).unwrap();
            }
        }
        writer.finish().unwrap();
        Recording::open(&path).unwrap()
    }
}

impl States {
    /// Returns the writes that lead to a state.
    pub fn writes_of(&self, state: &str) -> &[(u64, Vec<u8>)] {
        let number = self.images.iter().position(|i| state_name(i) == state);
        &self.writes[number.unwrap()]
    }
}

/// Computes the writes from each image to the next.
fn writes_between(images: &[PathBuf], size_bytes: u64) -> Vec<Vec<(u64, Vec<u8>)>> {
    let mut before = vec![0; size_bytes as usize];
    let writes = images.iter().map(|image| {
        let after = fs::read(image).unwrap();
        let changes = changes(&before, &after).into_iter();
        let writes =
            changes.map(|(at, length)| (at, after[at as usize..][..length as usize].to_vec()));
        let writes = writes.collect();
        before = after;
        writes
    });
    writes.collect()
}

pub fn state_name(image: &Path) -> String {
    image.file_stem().unwrap().to_string_lossy().into_owned()
}

/// Finds runs of changed blocks of at most 1 MiB; superblocks are separate and last.
fn changes(before: &[u8], after: &[u8]) -> Vec<(u64, u64)> {
    let mut found: Vec<(u64, u64)> = Vec::new();
    let changed = |range: std::ops::Range<usize>| before[range.clone()] != after[range];
    for at in (0..after.len()).step_by(STEP) {
        let is_super = SUPERS.contains(&(at as u64));
        let (start, end) = (at + if is_super { 4096 } else { 0 }, at + STEP);
        if !changed(start..end) {
            continue;
        }
        match found.last_mut() {
            Some((offset, length))
                if *offset + *length == start as u64 && *length < (1 << 20) - STEP as u64 =>
            {
                *length += (end - start) as u64
            }
            _ => found.push((start as u64, (end - start) as u64)),
        }
    }
    let supers = SUPERS
        .iter()
        .map(|&s| (s, 4096))
        .filter(|&(s, l)| changed(s as usize..(s + l) as usize));
    found.extend(supers);
    found
}
