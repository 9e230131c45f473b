//! Fuzz targets and the properties that must hold for any input: no panics, every written byte
//! covered by exactly one row, bounded memory and bounded time (libFuzzer's `-timeout`).
//!
//! Each target is a function of bytes, so that libFuzzer, a test over the corpus and a debugger run
//! the same code.

mod check;
mod damage;
mod memory;
mod models;
mod ondisk;
mod protocols;
mod repair;
mod requests;
mod seed;
mod trace;

use arbitrary::{Arbitrary as _, Unstructured};
use check::{explain_all, open_all};
use damage::Damage;
use fscost_recording::{Output, Recording, dm_log_writes};
use fscost_strip::Names;
use std::path::Path;

pub use trace::{
    trace_alibaba, trace_blkparse, trace_blktrace, trace_dm_log_writes, trace_fio, trace_msr,
    trace_others, trace_systor17, trace_tencent,
};

/// Memory limit: more than any input of a few hundred KB may need. Allocating more aborts. The
/// recorder's own frames take 21 MiB of it.
const MEMORY_BYTES: usize = 256 << 20;

#[global_allocator]
static ALLOCATOR: memory::Limited = memory::Limited::new();

/// First number of a seed that is cut short: half of the numbers of a byte.
const FIRST_SHORT: u8 = 128;

/// Function that runs on an input, and returns if all checks pass.
pub type Target = fn(&[u8]);

/// All targets by name.
pub const TARGETS: [(&str, Target); 25] = [
    ("ext", ext),
    ("xfs", xfs),
    ("btrfs", btrfs),
    ("others", others),
    ("arrays", arrays),
    ("strip", strip),
    ("ondisk", ondisk::run),
    ("recording", recording),
    ("dm_log_writes", dm_log_writes),
    ("trace_alibaba", trace_alibaba),
    ("trace_blkparse", trace_blkparse),
    ("trace_blktrace", trace_blktrace),
    ("trace_dm_log_writes", trace_dm_log_writes),
    ("trace_fio", trace_fio),
    ("trace_msr", trace_msr),
    ("trace_others", trace_others),
    ("trace_systor17", trace_systor17),
    ("trace_tencent", trace_tencent),
    ("latency", latency),
    ("wear", requests::wear),
    ("raid", requests::raid),
    ("replay", requests::replay),
    ("nbd", protocols::nbd),
    ("fuse", protocols::fuse),
    ("canary", canary),
];

/// Fails on an input that libFuzzer finds within seconds, but only if guided by coverage. If
/// libFuzzer does not find it, `fuzz/run` is ineffective.
///
/// # Panics
///
/// Panics on inputs that begin with `fsc`.
pub fn canary(input: &[u8]) {
    if input.first() == Some(&b'f') && input.get(1) == Some(&b's') && input.get(2) == Some(&b'c') {
        panic!("the canary is found");
    }
}

/// Damages a small recording of ext2, ext3 or ext4.
pub fn ext(input: &[u8]) {
    family("ext", input);
}

/// Damages a small recording of xfs.
pub fn xfs(input: &[u8]) {
    family("xfs", input);
}

/// Damages a small recording of btrfs.
pub fn btrfs(input: &[u8]) {
    family("btrfs", input);
}

/// Damages a small recording of f2fs, nilfs2, jfs or another file system that the local kernel may
/// not support.
pub fn others(input: &[u8]) {
    family("others", input);
}

/// Damages a small recording of the members of an md array.
pub fn arrays(input: &[u8]) {
    family("arrays", input);
}

/// Damages a small recording of a strippable family, and strips it. The first byte selects the
/// treatment of names.
pub fn strip(input: &[u8]) {
    let Some((&names, input)) = input.split_first() else {
        return;
    };
    let names = [Names::Replace, Names::Extensions, Names::Keep][usize::from(names) % 3];
    damaged(&["ext", "xfs", "btrfs"], input, |folder, damaged| {
        let path = folder.join("stripped");
        fscost_strip::strip(damaged, new(&path), names, &[7; 32]).expect("a whole recording");
        let stripped = Recording::open(&path).expect("what was just written");
        check::assert_stripped(damaged, &stripped);
        explain_all(&stripped);
    });
}

fn family(name: &str, input: &[u8]) {
    damaged(&[name], input, |_, damaged| explain_all(damaged));
}

fn damaged(families: &[&str], input: &[u8], check: impl FnOnce(&Path, &Recording)) {
    let Ok(damage) = Damage::arbitrary_take_rest(Unstructured::new(input)) else {
        return;
    };
    if std::env::var_os("FSCOST_FUZZ_PRINT").is_some() {
        eprintln!("{damage:#?}");
    }
    // The corpus has inputs for both. A fuzzer that mutates is quick only with short seeds.
    let is_short = damage.seed >= FIRST_SHORT;
    if !is_short && std::env::var_os("FSCOST_FUZZ_SHORT").is_some() {
        return;
    }
    let seeds = families.iter().flat_map(|family| {
        if is_short {
            seed::short(family)
        } else {
            seed::of(family)
        }
    });
    let seeds: Vec<_> = seeds.collect();
    let seed = seeds[usize::from(damage.seed % FIRST_SHORT) % seeds.len()];
    bounded(|folder| {
        let path = folder.join("damaged");
        seed.with(&damage).write(&path);
        check(
            folder,
            &Recording::open(&path).expect("what was just written"),
        );
    });
}

/// Reads the input as a recording, first unchanged and then with repaired checksums, so that the
/// code behind the checksums is reached.
pub fn recording(input: &[u8]) {
    bounded(|folder| {
        for (name, bytes) in [("as it is", input), ("repaired", &repair::repaired(input))] {
            let path = folder.join(name);
            std::fs::write(&path, bytes).expect("space for the input");
            open_all(&path);
        }
    });
}

/// Reads the input as a dm-log-writes log. The imported recording is explained, and must survive an
/// export and another import unchanged.
pub fn dm_log_writes(input: &[u8]) {
    bounded(|folder| {
        let [log, first, exported, second] =
            ["log", "first", "exported", "second"].map(|name| folder.join(name));
        std::fs::write(&log, input).expect("space for the input");
        if dm_log_writes::import(&log, new(&first)).is_err() {
            return;
        }
        let imported = Recording::open(&first).expect("what was just imported");
        assert!(fscost_recording::verify(&imported).is_ok_and(|report| report.is_whole()));
        explain_all(&imported);
        dm_log_writes::export(&imported, 0, new(&exported))
            .expect("what was imported can be exported");
        dm_log_writes::import(&exported, new(&second)).expect("what was exported can be imported");
        let again = Recording::open(&second).expect("what was just imported");
        check::assert_same_events(&imported, &again);
    });
}

fn new(path: &Path) -> Output {
    Output::create(path).expect("a name of our own")
}

/// Runs a function with its own folder and limited memory.
fn bounded(run: impl FnOnce(&Path)) {
    // Many small files per second: use an in-memory file system if there is one.
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() {
        tempfile::tempdir_in(memory)
    } else {
        tempfile::tempdir()
    };
    let folder = folder.expect("a temporary folder");
    ALLOCATOR.allow(MEMORY_BYTES);
    run(folder.path());
    ALLOCATOR.allow(usize::MAX);
}

/// Reads the input as an untrusted device model, followed by requests.
pub fn latency(input: &[u8]) {
    models::run(input);
}
