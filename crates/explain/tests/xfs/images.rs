//! Images written by `mkfs.xfs` alone, with features that the kernel here may not mount; no root
//! needed.

use crate::blocks::compare;
use crate::conserved::assert_conserved;
use fscost_explain::{Structure, explain};
use fscost_recording::{DiskInfo, Event, Header, Mark, Op, Recording, Writer};
use std::path::Path;
use std::process::Command;

const SIZE_BYTES: u64 = 320 << 20;
const PIECE: usize = 64 << 10;

/// What `mkfs.xfs` makes with these arguments and a directory of files in it, as one recording of
/// writes of at most `piece` bytes. None, said aloud, where there is no such program.
fn made(folder: &Path, arguments: &[&str], piece: usize) -> Option<Recording> {
    let image = folder.join("image");
    let files = folder.join("some");
    std::fs::write(&files, vec![7; 70_000]).unwrap();
    let mut proto = String::from("/ignored\n1 1\nd--755 0 0\nd d--755 0 0\n");
    for number in 0..200 {
        proto += &format!("name-{number} ---644 0 0 {}\n", files.display());
    }
    proto += "$\nlink l--777 0 0 d/name-1\n$\n";
    let file = std::fs::File::create(&image).unwrap();
    file.set_len(SIZE_BYTES).unwrap();
    let proto_file = folder.join("proto");
    std::fs::write(&proto_file, proto).unwrap();
    let mkfs = Command::new("mkfs.xfs")
        .args(["-q", "-f", "-p"])
        .arg(proto_file)
        .args(arguments)
        .arg(&image)
        .output();
    let output = match mkfs {
        Ok(output) => output,
        Err(error) => {
            eprintln!("SKIPPED, because mkfs.xfs cannot be run: {error}");
            assert!(std::env::var_os("FSCOST_REQUIRE_ROOT_TESTS").is_none());
            return None;
        }
    };
    assert!(output.status.success(), "{output:?}");
    let path = folder.join("recording.fscost");
    let disk = DiskInfo {
        name: "main".into(),
        size_bytes: SIZE_BYTES,
        logical_block_bytes: 512,
        physical_block_bytes: 4096,
    };
    let header = Header {
        begin_unix_ns: 0,
        disks: vec![disk],
        stripped: Default::default(),
    };
    let mut writer = Writer::create(&path, &header).unwrap();
    let content = std::fs::read(&image).unwrap();
    for (number, content) in content.chunks(piece).enumerate() {
        if content.iter().all(|&byte| byte == 0) {
            continue;
        }
        writer.space()[..content.len()].copy_from_slice(content);
        let event = Event {
            submit_ns: 0,
            complete_ns: 0,
            offset: (number * piece) as u64,
            length: content.len() as u64,
            content_offset: 0,
            disk: 0,
            op: Op::Write,
            fua: false,
        };
        writer.append(event).unwrap();
    }
    let mark = |name: &str| Mark {
        name: name.into(),
        detail: Default::default(),
    };
    writer.mark(&mark("mount"), 1).unwrap();
    writer.finish().unwrap();
    Some(Recording::open(&path).unwrap())
}

#[test]
fn a_realtime_section_is_known_by_its_inodes() {
    let folder = tempfile::tempdir().unwrap();
    let device = folder.path().join("realtime");
    let file = std::fs::File::create(&device).unwrap();
    file.set_len(SIZE_BYTES).unwrap();
    let realtime = format!("rtdev={},extsize=4k", device.display());
    let Some(recording) = made(
        folder.path(),
        &["-r", &realtime, "-m", "reflink=0,rmapbt=0"],
        PIECE,
    ) else {
        return;
    };
    let explained = explain(&recording).unwrap();
    assert_conserved(&recording, &explained);
    let image = folder.path().join("image");
    let compared = compare(&explained, &recording, &image, u64::MAX);
    assert!(compared[&Structure::FileData] > 2000, "{compared:?}");
    assert!(compared[&Structure::Realtime] > 0, "{compared:?}");
}

#[test]
fn what_has_no_checksums_is_not_claimed_to_be_understood() {
    let folder = tempfile::tempdir().unwrap();
    let Some(recording) = made(folder.path(), &["-m", "crc=0"], PIECE) else {
        return;
    };
    let explained = explain(&recording).unwrap();
    assert_conserved(&recording, &explained);
    assert_eq!(explained.families, [None]);
    assert!(
        explained
            .rows
            .iter()
            .all(|r| r.structure == Structure::Unknown)
    );
}

#[test]
fn writes_shorter_than_an_inode_are_covered() {
    let folder = tempfile::tempdir().unwrap();
    let Some(recording) = made(folder.path(), &["-i", "size=2048"], 512) else {
        return;
    };
    assert_conserved(&recording, &explain(&recording).unwrap());
}
