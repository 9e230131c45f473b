//! Contents of an image as reported by btrfs's own tool.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

/// Blocks and extents by their place on the one device.
#[derive(Debug, Default)]
pub struct Dump {
    /// Offset, owner's name and, for a block of a log tree, the number of the logged tree.
    pub blocks: Vec<(u64, String, Option<u64>)>,
    /// Offset, bytes and inode of each file's extents.
    pub extents: Vec<(u64, u64, u64)>,
}

/// The tool's output: blocks and extents by their logical address.
struct Logical {
    /// Start, length and places of each chunk.
    chunks: Vec<(u64, u64, Vec<u64>)>,
    /// Owner and logged tree of each block, as in [`Dump`].
    blocks: HashMap<u64, (String, Option<u64>)>,
    /// Extents, as in [`Dump`].
    extents: Vec<(u64, u64, u64)>,
}

fn parse(text: &str) -> Logical {
    let mut chunks = Vec::new();
    let mut blocks = HashMap::new();
    let mut extents = Vec::new();
    let (mut inode, mut logged) = (0, None);
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            // A block's header and its second line ("leaf N flags …") begin alike.
            ["leaf" | "node", bytenr, .., "owner", owner] => {
                blocks.insert(bytenr.parse().unwrap(), ((*owner).to_owned(), logged));
            }
            ["log", "tree", "key", "(TREE_LOG", "ROOT_ITEM", tree] => {
                logged = tree.trim_end_matches(')').parse().ok();
            }
            [.., "tree", "key", _, "ROOT_ITEM", _] => logged = None,
            [
                "item",
                _,
                "key",
                "(FIRST_CHUNK_TREE",
                "CHUNK_ITEM",
                logical,
                ..,
            ] => {
                chunks.push((
                    logical.trim_end_matches(')').parse().unwrap(),
                    0,
                    Vec::new(),
                ));
            }
            ["length", length, "owner", ..] if !chunks.is_empty() => {
                chunks.last_mut().unwrap().1 = length.parse().unwrap();
            }
            ["stripe", _, "devid", "1", "offset", offset] => {
                chunks.last_mut().unwrap().2.push(offset.parse().unwrap())
            }
            ["item", _, "key", objectid, "EXTENT_DATA", ..] => {
                inode = objectid.trim_start_matches('(').parse().unwrap();
            }
            ["extent", "data", "disk", "byte", bytenr, "nr", bytes, ..] if *bytenr != "0" => {
                extents.push((bytenr.parse().unwrap(), bytes.parse().unwrap(), inode));
            }
            _ => {}
        }
    }
    Logical {
        chunks,
        blocks,
        extents,
    }
}

/// Lists every tree block and every file extent of an image, copies included.
pub fn dump(image: &Path) -> Dump {
    let output = Command::new("btrfs")
        .args(["inspect-internal", "dump-tree"])
        .arg(image)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let Logical {
        chunks,
        blocks,
        extents,
    } = parse(&String::from_utf8_lossy(&output.stdout));
    let mut dump = Dump::default();
    let places = |logical: u64| {
        let chunk = chunks
            .iter()
            .find(|(start, length, _)| (*start..start + length).contains(&logical))
            .unwrap();
        chunk
            .2
            .iter()
            .map(move |stripe| stripe + logical - chunk.0)
            .collect::<Vec<_>>()
    };
    for (bytenr, (owner, logged)) in blocks {
        dump.blocks.extend(
            places(bytenr)
                .into_iter()
                .map(|place| (place, owner.clone(), logged)),
        );
    }
    for (bytenr, bytes, inode) in extents {
        dump.extents.extend(
            places(bytenr)
                .into_iter()
                .map(|place| (place, bytes, inode)),
        );
    }
    dump
}

/// Maps the owner of a tree's blocks to the name in our tables.
pub fn structure(owner: &str) -> &'static str {
    match owner {
        "ROOT_TREE" => "root_tree",
        "EXTENT_TREE" => "extent_tree",
        "CHUNK_TREE" => "chunk_tree",
        "DEV_TREE" => "device_tree",
        "CSUM_TREE" => "csum_tree",
        "UUID_TREE" => "uuid_tree",
        "FREE_SPACE_TREE" => "free_space_tree",
        "BLOCK_GROUP_TREE" => "block_group_tree",
        "QUOTA_TREE" => "quota_tree",
        "TREE_LOG" => "log_tree",
        "DATA_RELOC_TREE" => "relocation_tree",
        _ => "fs_tree",
    }
}
