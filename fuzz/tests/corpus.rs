//! Every input of the corpus through its target, without libFuzzer: what was found once stays
//! mended, on any machine.

use std::path::Path;

fn run(target: &str) {
    let (_, function) = fscost_fuzz::TARGETS
        .iter()
        .find(|(name, _)| *name == target)
        .expect("a target");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target);
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|entry| entry.expect("a folder that can be read").path())
        .collect();
    files.sort();
    assert!(files.len() >= 5, "{target}: {} inputs", files.len());
    for file in &files {
        // Seen only when it fails, as the last.
        println!("{}", file.display());
        function(&std::fs::read(file).expect("an input"));
    }
}

#[test]
fn ext() {
    run("ext");
}

#[test]
fn xfs() {
    run("xfs");
}

#[test]
fn btrfs() {
    run("btrfs");
}

#[test]
fn others() {
    run("others");
}

#[test]
fn arrays() {
    run("arrays");
}

#[test]
fn strip() {
    run("strip");
}

#[test]
fn ondisk() {
    run("ondisk");
}

#[test]
fn recording() {
    run("recording");
}

#[test]
fn dm_log_writes() {
    run("dm_log_writes");
}

#[test]
fn trace_alibaba() {
    run("trace_alibaba");
}

#[test]
fn trace_blkparse() {
    run("trace_blkparse");
}

#[test]
fn trace_blktrace() {
    run("trace_blktrace");
}

#[test]
fn trace_dm_log_writes() {
    run("trace_dm_log_writes");
}

#[test]
fn trace_fio() {
    run("trace_fio");
}

#[test]
fn trace_msr() {
    run("trace_msr");
}

#[test]
fn trace_others() {
    run("trace_others");
}

#[test]
fn trace_systor17() {
    run("trace_systor17");
}

#[test]
fn trace_tencent() {
    run("trace_tencent");
}

#[test]
fn latency() {
    run("latency");
}

#[test]
fn wear() {
    run("wear");
}

#[test]
fn raid() {
    run("raid");
}

#[test]
fn replay() {
    run("replay");
}

#[test]
fn nbd() {
    run("nbd");
}

#[test]
fn fuse() {
    run("fuse");
}
