//! Contents of an image as reported by xfs's own tools.

use std::collections::{BTreeMap, HashMap};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Use of a block as reported by `xfs_db`.
#[derive(Debug)]
pub struct Use {
    /// Byte offset.
    pub offset: u64,
    /// `data`, `btbno`, …
    pub kind: String,
    /// Inode, for data and blocks of inodes.
    pub inode: Option<u64>,
    /// Path without the leading slash.
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

/// Sizes of a file system.
pub struct Shape {
    /// Bytes of a block.
    pub block_bytes: u64,
    group_blocks: u64,
    group_log: u64,
}

impl Shape {
    /// Reads the sizes of the file system in an image.
    pub fn of(image: &Path) -> Shape {
        let text = xfs_db(image, "sb 0\np blocksize agblocks agblklog\n");
        let field = |name: &str| -> u64 {
            let line = text.lines().find(|l| l.starts_with(name)).unwrap();
            line.rsplit(' ').next().unwrap().parse().unwrap()
        };
        Shape {
            block_bytes: field("blocksize"),
            group_blocks: field("agblocks"),
            group_log: field("agblklog"),
        }
    }
}

/// Returns the uses of the blocks at these byte offsets.
pub fn block_uses(image: &Path, offsets: &[u64]) -> Vec<Use> {
    let shape = Shape::of(image);
    let (bytes, group, log) = (shape.block_bytes, shape.group_blocks, shape.group_log);
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

/// The log between tail and head, as `xfs_logprint` finds them.
#[derive(Debug, PartialEq, Eq)]
pub struct LogState {
    /// Blocks of the log.
    pub tail: u64,
    pub head: u64,
    pub is_clean: bool,
    /// Transactions that would be replayed.
    pub checkpoints: usize,
    /// Number of items in these transactions.
    pub items: u64,
}

fn logprint(image: &Path, log: Option<&Path>, words: &[&str]) -> String {
    let mut command = Command::new("xfs_logprint");
    command.args(words);
    if let Some(log) = log {
        command.arg("-l").arg(log);
    }
    let output = command.arg(image).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns the part of the log that a mount would replay.
pub fn log_state(image: &Path, log: Option<&Path>) -> LogState {
    let text = logprint(image, log, &["-t"]);
    let after = |key: &str| text.split(key).nth(1).unwrap().split_whitespace().next();
    let number = |key: &str| after(key).unwrap().parse().unwrap();
    LogState {
        tail: number("log tail: "),
        head: number(" head: "),
        is_clean: after("state: ") == Some("<CLEAN>"),
        checkpoints: text.lines().filter(|l| l.starts_with("TRANS: ")).count(),
        items: text
            .lines()
            .filter(|l| l.contains(": cnt:") && l.contains(" total:"))
            .count() as u64,
    }
}

/// Bytes of the log, operation headers included, as `xfs_logprint` counts them.
#[derive(Debug, Default)]
pub struct LogBytes {
    /// Bytes of items, by kind and the byte offset of the object that they describe.
    pub items: BTreeMap<(String, Option<u64>), u64>,
    /// Bytes of inode items, by inode.
    pub inodes: HashMap<u64, u64>,
    /// Items whose place it does not print, since their first region is split.
    pub nameless: usize,
}

impl LogBytes {
    /// Sums bytes by place alone: a list of removed inodes is in the place of an inode.
    pub fn places(&self) -> HashMap<u64, u64> {
        let mut places = HashMap::new();
        for ((_, place), bytes) in &self.items {
            if let Some(place) = place {
                *places.entry(*place).or_default() += bytes;
            }
        }
        places
    }
}

/// Add up all operations of items of an image's log, internal or in another image.
pub fn log_bytes(image: &Path, log: Option<&Path>) -> LogBytes {
    let shape = Shape::of(image);
    let text = logprint(image, log, &[]);
    let mut found = LogBytes::default();
    let lines: Vec<&str> = text.lines().collect();
    let (mut kind, mut place, mut inode, mut more) = (String::new(), None, None, 0);
    for (number, line) in lines.iter().enumerate() {
        let Some(rest) = line.strip_prefix("Oper (") else {
            continue;
        };
        let after = |key: &str| rest.split(key).nth(1).unwrap().split_whitespace();
        let bytes = 12 + after("len: ").next().unwrap().parse::<u64>().unwrap();
        let flags: Vec<&str> = after("flags: ").collect();
        if ["START", "COMMIT", "UNMOUNT"]
            .iter()
            .any(|f| flags.contains(f))
        {
            continue;
        }
        if flags.contains(&"WAS_CONT") {
            // Of the same region.
        } else if more > 0 {
            more -= 1;
        } else {
            // What describes the item is in this line and the next.
            let next = |n: usize| lines.get(number + n).copied().unwrap_or_default();
            let words = format!("{} {}", next(1), next(2));
            let word = |key: &str| {
                words
                    .split(key)
                    .nth(1)
                    .and_then(|t| t.split_whitespace().next())
            };
            let decimal = |key: &str| word(key).and_then(|w| w.parse::<u64>().ok());
            let hexadecimal = |key: &str| word(key).and_then(|w| u64::from_str_radix(w, 16).ok());
            kind = words.split(':').next().unwrap().to_owned();
            more = decimal("#regs:").map_or(0, |count| count - 1);
            inode = hexadecimal("ino: 0x").filter(|_| kind == "INODE");
            place = match kind.as_str() {
                "INODE" if inode.is_some() => {
                    Some(decimal("blkno:").unwrap() * 512 + decimal("boff:").unwrap())
                }
                "BUF" => decimal("start blkno:").map(|block| block * 512),
                "ICR" => {
                    let (group, block) =
                        (decimal("#ag:").unwrap(), hexadecimal("agbno: 0x").unwrap());
                    Some((group * shape.group_blocks + block) * shape.block_bytes)
                }
                _ => None,
            };
            if ["INODE", "BUF"].contains(&kind.as_str()) && place.is_none() {
                found.nameless += 1;
            }
        }
        if kind == "TRAN" {
            continue;
        }
        *found.items.entry((kind.clone(), place)).or_default() += bytes;
        if let Some(inode) = inode {
            *found.inodes.entry(inode).or_default() += bytes;
        }
    }
    found
}
