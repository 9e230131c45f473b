//! Arbitrary bytes as input of every parser of on-disk formats. Parsers must terminate and return
//! no range outside their input.

use fscost_ondisk::{btrfs, bytes, ext, f2fs, fat, jfs, nilfs2, ntfs, reiserfs, xfs};
use std::hint::black_box;
use std::ops::Range;

/// Runs the parsers of one family. The first byte selects the family.
pub fn run(input: &[u8]) {
    let Some((&family, input)) = input.split_first() else {
        return;
    };
    match family % 8 {
        0 => ext(input),
        1 => xfs(input),
        2 => xfs_log(input),
        3 => btrfs(input),
        4 => f2fs_and_nilfs2(input),
        5 => jfs(input),
        6 => fat_and_ntfs(input),
        _ => reiserfs(input),
    }
}

/// Asserts that a range lies within `bytes`.
fn within(bytes: &[u8], place: Range<usize>) {
    assert!(
        bytes.get(place.clone()).is_some(),
        "{place:?} of {}",
        bytes.len()
    );
}

/// Reads a superblock, then parses a block in every way with it.
fn ext(input: &[u8]) {
    use ext::layout::{Content, Kind};
    use ext::superblock::BYTES;
    let Some(superblock) = ext::superblock::Superblock::parse(input) else {
        return;
    };
    // A million groups take a long time, but no memory.
    if superblock.groups() < 1 << 12 {
        ext::layout::places(&superblock, |place| _ = black_box(place));
    }
    let block = bytes::part(input, BYTES, usize::MAX);
    for has_file_types in [false, true] {
        for record in ext::directory::records(block, has_file_types).flatten() {
            within(block, record.name_at..record.end);
        }
        black_box(ext::directory::entries(block, has_file_types));
    }
    black_box(ext::directory::index_end(block));
    for attribute in ext::xattr::of_block(block).chain(ext::xattr::of_inode(block)) {
        within(block, attribute.at..attribute.at + ext::xattr::ENTRY_BYTES);
        within(block, attribute.name.clone());
        within(block, attribute.value);
    }
    let inode = ext::inode::Inode(block);
    black_box((inode.may_map(), ext::inode::inline_entries(inode)));
    let nodes = [
        Kind::Extents(Content::Data),
        Kind::Pointers(2, Content::Data),
    ];
    let nodes = nodes.map(|kind| ext::map::of_node(kind, block, &superblock));
    let claims = ext::map::of_inode(inode, 12, &superblock);
    for claim in claims.iter().chain(nodes.iter().flatten()) {
        assert!(claim.start + claim.length <= superblock.blocks, "{claim:?}");
    }
    if let Some((used, space)) = ext::map::extents_end(block) {
        assert!(used <= space && space <= block.len());
    }
    black_box(ext::fast_commit::records(block, &superblock).count());
    if let Some(journal) = ext::journal::Superblock::parse(block) {
        black_box((journal.after(7), journal.tags(block)));
    }
}

fn xfs(input: &[u8]) {
    use xfs::directory::Record;
    let geometry = xfs::superblock::Geometry::parse(input);
    let block = bytes::part(input, 512, usize::MAX);
    if let Some(geometry) = &geometry
        && let Some(found) = xfs::block::identify(geometry, 0, block)
            .or(xfs::block::group_header(geometry, 512, block))
    {
        black_box((found.fingerprint(block), found.sequence(block)));
    }
    if let Some((kind, _)) = xfs::block::by_magic(block) {
        for unused in xfs::block::unused(kind, block) {
            within(block, unused);
        }
    }
    for record in xfs::directory::records(block) {
        match record {
            Record::Name(entry) => within(block, entry.name_at..entry.end),
            Record::Free { at, end } => within(block, at..end),
        }
    }
    xfs::directory::short_form(block).for_each(|entry| within(block, entry.name_at..entry.end));
    let (header, attributes) = xfs::xattr::short_form(block);
    attributes.for_each(|attribute| within(block, attribute.at..attribute.value.end));
    within(block, 0..header.max(xfs::xattr::leaf(block).0));
    within(block, xfs::block::target(block));
    if let Some(core) = xfs::inode::Core::on_disk(block) {
        let (data, _) = core.forks(block);
        for unused in xfs::inode::unused(data, core.data_format, core.data_extents) {
            within(data, unused);
        }
    }
    black_box(xfs::inode::leaf_extents(block).map(Iterator::count));
}

/// Reads sectors of a log from its beginning on, wrapping around repeatedly.
fn xfs_log(input: &[u8]) {
    use xfs::log_item::{BufferItem, InodeItem, Items, Kind, Part};
    use xfs::log_record::{Records, SECTOR};
    const LOG_SECTORS: u64 = 64;
    let mut records = Records::new(LOG_SECTORS, [0; 16]);
    let (mut done, mut taken) = (0, 0);
    while done + SECTOR <= input.len() {
        let sector = (done / SECTOR) as u64 % LOG_SECTORS;
        let length = records.write(sector, &input[done..], |length| length);
        taken += length.unwrap_or(0);
        done += length.unwrap_or(SECTOR);
    }
    let mut items = Items::default();
    while let Some(record) = records.next(true) {
        let pieces = record.pieces.iter().map(|piece| piece.place);
        taken -= pieces.sum::<usize>();
        record
            .covered()
            .for_each(|place| within(&record.bytes, place));
        for operation in record.operations() {
            within(&record.bytes, operation.range.clone());
            if items.take(&operation) != Part::LastOfItem {
                continue;
            }
            let regions = std::mem::take(&mut items.regions);
            let format = regions.get(0).unwrap_or_default();
            black_box((Kind::of(format), InodeItem::parse(format)));
            if let Some(item) = BufferItem::parse(format)
                && let Some(places) = item.places(regions.from(1).map(<[u8]>::len))
            {
                for (place, region) in places.iter().zip(regions.from(1)) {
                    assert!(place.end <= item.length && place.len() <= region.len());
                }
            }
        }
    }
    // The remaining sectors belong to incomplete records, or to records that another one with the
    // same number replaced.
    black_box(taken);
}

fn btrfs(input: &[u8]) {
    let bytes = bytes::part(input, 0, 4096);
    let mut chunks = btrfs::chunk::ChunkMap::default();
    if let Some(superblock) = btrfs::superblock::Super::parse(bytes) {
        superblock.add_chunks(&mut chunks);
    }
    if let Some((chunk, _)) = btrfs::chunk::Chunk::parse(0, bytes) {
        chunks.insert(chunk);
    }
    for at in [0, 1 << 16, 1 << 30] {
        black_box((chunks.place(1, at), chunks.copies(at).count()));
    }
    let fsid = bytes::array(bytes, btrfs::block::COVERED_AT).unwrap_or_default();
    let Some(header) = btrfs::block::Header::parse(bytes, &fsid, 4096) else {
        return;
    };
    within(&[0; 4096], 0..header.entries_end());
    for (key, place) in (0..header.len()).filter_map(|number| header.item(bytes, number)) {
        within(bytes, place.clone());
        let item = &bytes[place];
        for found in btrfs::item::names(key.kind, item) {
            within(item, found.name.start..found.value.end);
        }
        black_box((
            btrfs::item::references(item).count(),
            btrfs::item::uuids(item),
        ));
    }
}

fn f2fs_and_nilfs2(input: &[u8]) {
    for slots in [
        f2fs::directory::IN_BLOCK,
        f2fs::directory::inline_count(input.len()),
    ] {
        black_box(f2fs::directory::entries(input, slots));
    }
    if let Some(node) = f2fs::node::Node::parse(bytes::part(input, 0, f2fs::BLOCK as usize)) {
        for flexible in [false, true] {
            black_box((
                node.addresses(flexible).count(),
                node.fingerprints(flexible),
            ));
        }
    }
    if let Some(geometry) = f2fs::superblock::Geometry::parse(input) {
        black_box(geometry.segment(geometry.end));
    }
    let checkpoint = f2fs::checkpoint::Checkpoint(input);
    black_box((checkpoint.version(), checkpoint.blocks()));
    black_box((checkpoint.node_segments(), checkpoint.data_segments()));
    if let Some(geometry) = nilfs2::superblock::Geometry::parse(input, 1 << 40) {
        assert!(geometry.segment_end(geometry.first_block) > geometry.first_block);
    }
    for (name, _) in nilfs2::directory::entries(input) {
        assert!(!name.is_empty() && name.len() <= input.len());
    }
    if let Some(summary) = nilfs2::summary::Summary::parse(input, 1024) {
        assert!(summary.files.len() <= input.len());
    }
    black_box(nilfs2::ifile::fingerprints(input));
}

fn jfs(input: &[u8]) {
    let mut log = jfs::log::Log::default();
    for page in input.chunks(4096) {
        for record in log.page(page).committed.iter().flatten() {
            black_box(record.lines().len());
        }
        black_box(jfs::tree::extents(page));
        let inode = jfs::inode::Inode(page);
        black_box((inode.number(), inode.generation(), inode.fileset()));
        black_box((inode.kind(), inode.size(), inode.attributes()));
        black_box((inode.is_linked(), inode.fingerprints()));
        for tree in [Some(inode.tree()), inode.table()].into_iter().flatten() {
            black_box(jfs::tree::extents(tree));
        }
        black_box(jfs::inode::mapped(page).count());
        if let Some(found) = jfs::superblock::Superblock::parse(page) {
            black_box((found.block_bytes(), found.is_clean(), found.log()));
            black_box((found.own_inodes(), found.own_map(), found.fsck()));
        }
        black_box(jfs::superblock::is_log(page));
        for is_root in [false, true] {
            black_box(jfs::tree::names(page, is_root));
        }
    }
}

fn fat_and_ntfs(input: &[u8]) {
    use fat::layout::{Kind, Layout};
    let entries = bytes::part(input, 512, usize::MAX);
    let layout = Layout::parse(input, 1 << 40);
    if let Some(layout) = &layout {
        black_box((layout.offset(2), layout.entry(entries, 0)));
    }
    for kind in [Kind::Fat32, Kind::ExFat] {
        black_box(fat::directory::named(entries, 0, kind).len());
        black_box(fat::directory::are_entries(entries, kind));
    }
    black_box(ntfs::Geometry::parse(input, 1 << 40));
    if let Some(record) = ntfs::Record::parse(input) {
        black_box(record.fingerprints());
        for attribute in record.attributes() {
            black_box((attribute.name(), attribute.runs().len()));
        }
    }
}

fn reiserfs(input: &[u8]) {
    use reiserfs::journal::{Description, has_magic};
    use reiserfs::superblock::Geometry;
    black_box((has_magic(input, 7), reiserfs::is_node(input)));
    if let Some(geometry) = Geometry::parse(input, 1 << 40) {
        assert!(geometry.journal_header() >= geometry.journal_at);
    }
    if let Some(found) = Description::parse(input, 4096, 8192) {
        assert!(found.homes.len() as u64 <= found.length && found.length < 8192);
    }
    for item in reiserfs::items(input) {
        black_box((item.generation(), item.blocks().count(), item.names().len()));
    }
}
