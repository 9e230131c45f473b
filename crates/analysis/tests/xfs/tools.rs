//! What xfs's own tools say of an image.

use std::collections::{BTreeMap, HashMap};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// What `xfs_db` says that a block is used for.
#[derive(Debug)]
pub struct Use {
    /// Byte offset.
    pub offset: u64,
    /// `data`, `btbno`, …
    pub kind: String,
    /// Of data and blocks of inodes.
    pub inode: Option<u64>,
    /// Without the leading slash.
    pub name: Option<String>,
}

fn xfs_db(image: &Path, commands: &str) -> String {
    let mut child = Command::new("xfs_db")
        .arg("-r")
        .arg(image)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let commands = commands.to_owned();
    let feed = std::thread::spawn(move || input.write_all(commands.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    feed.join().unwrap();
    String::from_utf8_lossy(&output.stdout).replace("xfs_db> ", "")
}

/// What the blocks at these byte offsets are used for.
pub fn block_uses(image: &Path, offsets: &[u64]) -> Vec<Use> {
    let text = xfs_db(image, "sb 0\np blocksize agblocks agblklog\n");
    let field = |name: &str| -> u64 {
        let line = text.lines().find(|l| l.starts_with(name)).unwrap();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    let (bytes, group, log) = (field("blocksize"), field("agblocks"), field("agblklog"));
    let mut commands = String::from("blockget -n\n");
    for offset in offsets {
        let block = offset / bytes;
        let fs_block = ((block / group) << log) | (block % group);
        commands += &format!("fsblock {fs_block}\nblockuse -n\n");
    }
    let text = xfs_db(image, &commands);
    let lines = text.lines().filter(|line| line.starts_with("block "));
    let uses: Vec<_> = lines
        .zip(offsets)
        .map(|(line, &offset)| {
            // block 300 (0/300) type data inode 183 d/f52
            let words: Vec<&str> = line.splitn(8, ' ').collect();
            Use {
                offset,
                kind: words[4].to_owned(),
                inode: words.get(6).and_then(|w| w.parse().ok()),
                name: words.get(7).map(|w| (*w).to_owned()),
            }
        })
        .collect();
    assert_eq!(uses.len(), offsets.len(), "{text:.2000}");
    uses
}

/// Bytes of the log, operation headers included, as `xfs_logprint` counts them.
#[derive(Debug, Default)]
pub struct LogBytes {
    /// By kind of item.
    pub kinds: BTreeMap<String, u64>,
    /// Of inode items, by inode.
    pub inodes: HashMap<u64, u64>,
    /// Items of which it does not print the inode, since their first region is split.
    pub nameless: usize,
}

/// Add up all operations of an image's log.
pub fn log_bytes(image: &Path) -> LogBytes {
    let output = Command::new("xfs_logprint").arg(image).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let mut found = LogBytes::default();
    let mut lines = text.lines().peekable();
    let (mut kind, mut inode, mut more) = (String::new(), None, 0);
    while let Some(line) = lines.next() {
        let Some(rest) = line.strip_prefix("Oper (") else {
            continue;
        };
        let after = |key: &str| rest.split(key).nth(1).unwrap().split_whitespace();
        let bytes = 12 + after("len: ").next().unwrap().parse::<u64>().unwrap();
        let flags: Vec<&str> = after("flags: ").collect();
        let own = ["START", "COMMIT", "UNMOUNT"]
            .iter()
            .any(|f| flags.contains(f));
        if own {
            *found.kinds.entry("own".into()).or_default() += bytes;
            continue;
        }
        if flags.contains(&"WAS_CONT") {
            // Of the same region.
        } else if more > 0 {
            more -= 1;
        } else {
            let next = lines.peek().copied().unwrap_or_default();
            let word = |key: &str| {
                next.split(key)
                    .nth(1)
                    .and_then(|t| t.split_whitespace().next())
            };
            kind = next.split(':').next().unwrap().to_owned();
            more = word("#regs:").map_or(0, |w| w.parse::<usize>().unwrap() - 1);
            inode = word("ino: 0x").map(|w| u64::from_str_radix(w, 16).unwrap());
            if kind == "INODE" && inode.is_none() {
                found.nameless += 1;
            }
        }
        *found.kinds.entry(kind.clone()).or_default() += bytes;
        if let Some(inode) = inode {
            *found.inodes.entry(inode).or_default() += bytes;
        }
    }
    found
}
