//! File systems that this machine's kernel need not support: small real recordings of them, in
//! which every 512 bytes of a file name it. The fuzzer damages the same recordings
//! (`fuzz/seeds/others`).
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use fscost_explain::{Cause, Explained, Row, Structure, explain};
use fscost_recording::{Event, Op, Recording};
use std::collections::BTreeMap;
use std::path::Path;

const SECTOR: usize = 512;

/// Recording and its explanation.
struct Seed {
    recording: Recording,
    explained: Explained,
}

impl Seed {
    fn open(name: &str) -> Seed {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/others");
        let recording = Recording::open(&folder.join(format!("{name}.fscost"))).unwrap();
        let explained = explain(&recording).unwrap();
        Seed {
            recording,
            explained,
        }
    }

    /// Visits every row of a write, with its bytes and the phase.
    fn visit(&self, mut visit: impl FnMut(&Row, &[u8], &str)) {
        let mut rows = self.explained.rows.iter().peekable();
        let mut phase = String::new();
        self.writes(|number, event, content, mark| {
            if let Some(mark) = mark {
                phase = mark;
            }
            let mut at = event.offset;
            while let Some(row) = rows.next_if(|row| row.event == number) {
                assert_eq!(row.offset, at, "{row:?}");
                let from = (at - event.offset) as usize;
                visit(row, &content[from..][..row.length as usize], &phase);
                at += row.length;
            }
            let length = if event.op == Op::Write {
                event.length
            } else {
                0
            };
            assert_eq!(at, event.offset + length, "event {number}");
        });
        assert!(rows.next().is_none());
    }

    fn writes(&self, mut visit: impl FnMut(u64, &Event, &[u8], Option<String>)) {
        let mut number = 0;
        let walk = self.recording.for_each_frame(true, |_, frame| {
            for event in &frame.events {
                let mark = match event.op {
                    Op::Mark => Some(frame.mark_of(event)?.name),
                    _ => None,
                };
                visit(number, event, frame.content_of(event), mark);
                number += 1;
            }
            Ok(true)
        });
        walk.unwrap();
    }

    /// Sums the bytes of each structure after mkfs.
    fn sums(&self) -> BTreeMap<Structure, u64> {
        let mut sums = BTreeMap::new();
        self.visit(|row, _, phase| {
            if phase != "mkfs" {
                *sums.entry(row.structure).or_default() += row.length;
            }
        });
        sums
    }

    /// Asserts that every tagged sector is data of the file that it names. Returns the number of
    /// tagged sectors, and of those whose file is unknown: file data that was also written
    /// elsewhere before its location was recorded.
    fn assert_tags(&self) -> (usize, usize) {
        let (mut found, mut lost) = (0, 0);
        self.visit(|row, content, _| {
            for sector in content.chunks(SECTOR).filter(|s| s.starts_with(b"TAG /")) {
                // reiserfs may store the end of a file in a leaf, at any offset.
                if row.home.unwrap_or(row.structure) == Structure::FsTree {
                    continue;
                }
                let name = sector[4..].split(|&byte| byte == b' ').next().unwrap();
                let tagged = std::str::from_utf8(name).unwrap();
                assert_eq!(row.structure, Structure::FileData, "{tagged} {row:?}");
                let path = row.path.map(|path| self.explained.paths.text(path));
                let was = (tagged == RENAMED.0).then_some(RENAMED.1);
                // A tag that is truncated with its file names only the beginning of the path.
                let begins = path.is_some_and(|p| p.starts_with(tagged.trim_end_matches('\0')));
                let is_cut = sector[5..].contains(&0) && begins;
                let is_named = path == Some(tagged) || path.is_some() && path == was || is_cut;
                assert!(is_named || row.inode == 0, "{tagged} {path:?} {row:?}");
                found += 1;
                lost += usize::from(row.inode == 0);
            }
        });
        (found, lost)
    }
}

/// Old and new path of a file that is renamed between two writes.
const RENAMED: (&str, &str) = ("/d/file-with-a-name-of-some-length-2", "/e/moved");

#[test]
fn f2fs() {
    for (name, most_lost) in [("f2fs", 0), ("f2fs-extra", 4)] {
        let seed = Seed::open(name);
        assert_eq!(seed.explained.families, [Some("f2fs")]);
        let (found, lost) = seed.assert_tags();
        assert!(found > 50 && lost <= most_lost, "{name} {found} {lost}");
        let sums = seed.sums();
        assert!(!sums.contains_key(&Structure::Unknown), "{name} {sums:?}");
        for structure in [Structure::Node, Structure::Checkpoint, Structure::Directory] {
            assert!(sums.contains_key(&structure), "{name} {sums:?}");
        }
    }
}

#[test]
fn nilfs2() {
    for name in ["nilfs2", "nilfs2-1k"] {
        let seed = Seed::open(name);
        assert_eq!(seed.explained.families, [Some("nilfs2")]);
        let (found, lost) = seed.assert_tags();
        assert!(found > 50 && lost == 0, "{name} {found} {lost}");
        let sums = seed.sums();
        assert!(!sums.contains_key(&Structure::Unknown), "{name} {sums:?}");
        for structure in [
            Structure::SegmentSummary,
            Structure::Sufile,
            Structure::Dat,
            Structure::InodeTable,
            Structure::Checkpoint,
            Structure::Directory,
        ] {
            assert!(sums.contains_key(&structure), "{name} {sums:?}");
        }
    }
}

#[test]
fn vfat_and_exfat() {
    for (name, family) in [("vfat-16", "vfat"), ("vfat-32", "vfat"), ("exfat", "exfat")] {
        let seed = Seed::open(name);
        assert_eq!(seed.explained.families, [Some(family)]);
        let (found, lost) = seed.assert_tags();
        assert!(found > 50 && lost == 0, "{name} {found} {lost}");
        let sums = seed.sums();
        assert!(!sums.contains_key(&Structure::Unknown), "{name} {sums:?}");
        let bitmap = (family == "exfat").then_some(Structure::BlockBitmap);
        let table = (family == "vfat").then_some(Structure::AllocationTable);
        for structure in [Some(Structure::Directory), bitmap, table]
            .into_iter()
            .flatten()
        {
            assert!(sums.contains_key(&structure), "{name} {sums:?}");
        }
    }
}

#[test]
fn jfs_reiserfs_and_ntfs() {
    use Structure::*;
    let expected: [(&str, &[Structure]); 3] = [
        (
            "reiserfs",
            &[
                FsTree,
                BlockBitmap,
                JournalSuperblock,
                JournalDescriptor,
                JournalCopy,
                JournalCommit,
            ],
        ),
        (
            "jfs",
            &[InodeTable, InodeBitmap, BlockBitmap, Directory, Log],
        ),
        ("ntfs", &[Mft, InodeBitmap, BlockBitmap, Directory]),
    ];
    for (name, structures) in expected {
        let seed = Seed::open(name);
        assert_eq!(seed.explained.families, [Some(name)]);
        let (found, lost) = seed.assert_tags();
        assert!(found > 50 && lost == 0, "{name} {found} {lost}");
        let sums = seed.sums();
        let unknown = sums.get(&Unknown).copied().unwrap_or(0);
        assert!(unknown * 1000 <= sums.values().sum(), "{name} {sums:?}");
        for structure in structures {
            assert!(
                sums.contains_key(structure),
                "{name} {structure:?} {sums:?}"
            );
        }
    }
}

#[test]
fn what_was_done_is_the_cause() {
    for name in ["f2fs", "nilfs2"] {
        let seed = Seed::open(name);
        let mut made = 0;
        seed.visit(|row, _, phase| {
            let is_inode = matches!(row.structure, Structure::Node | Structure::InodeTable);
            made += u64::from(is_inode && phase == "make" && row.causes.has(Cause::NewInode));
            assert!(
                !row.causes.is_empty() && !row.causes.has(Cause::Unknown),
                "{row:?}"
            );
        });
        assert!(made > 0, "{name}");
    }
}
