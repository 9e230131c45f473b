//! States of recordings: which there are, in which order, and which images they have.
#![allow(missing_docs, clippy::unwrap_used)]

mod made;

use fscost_crash::{
    Choice, Contents, Enumeration, Identities, Memory, Model, Requests, TooMany, choices, image,
};
use fscost_recording::Op;
use made::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn the_kinds_come_in_order_and_in_order_has_prefixes_alone() {
    let entries: Vec<_> = (0..4)
        .map(|unit| write(unit, 1 + unit as u8, unit, 10 + unit))
        .collect();
    let (_folder, recording) = recorded(&entries);
    let requests = Requests::read(&recording, &[]).unwrap();
    let cut = requests.cut(20, UNIT, false);
    let found = choices(&cut, Model::Reorder, 100, 1);
    assert_eq!(found.len(), 16, "every subset of four units");
    assert_eq!((found[0].how, found[1].how), ("none", "all"));
    let kept: BTreeSet<_> = found.iter().map(|choice| &choice.kept).collect();
    assert_eq!(kept.len(), found.len());
    let ordered = choices(&cut, Model::InOrder, 100, 1);
    assert_eq!(ordered.len(), 5);
    for choice in ordered {
        let prefix: Vec<u32> = (0..choice.kept.len() as u32).collect();
        assert_eq!(choice.kept, prefix);
    }
}

#[test]
fn disks_in_order_do_not_wait_for_each_other() {
    let entries: Vec<_> = (0..6)
        .map(|unit| Entry {
            disk: (unit % 2) as u16,
            ..write(unit, 1 + unit as u8, unit, 10 + unit)
        })
        .collect();
    let (_folder, recording) = recorded(&entries);
    let requests = Requests::read(&recording, &[]).unwrap();
    let cut = requests.cut(20, UNIT, false);
    let found = choices(&cut, Model::InOrder, 100, 1);
    let kept: BTreeSet<_> = found.iter().map(|choice| choice.kept.clone()).collect();
    assert_eq!(kept.len(), found.len());
    let prefixes = |disk| {
        (0..4).map(move |first| {
            (0..6)
                .filter(|unit| unit % 2 == disk)
                .take(first)
                .collect::<Vec<u32>>()
        })
    };
    let all: BTreeSet<Vec<u32>> = prefixes(0)
        .flat_map(|even| prefixes(1).map(move |odd| [even.clone(), odd].concat()))
        .map(|mut kept| {
            kept.sort_unstable();
            kept
        })
        .collect();
    assert_eq!(all.len(), 16);
    assert_eq!(kept, all);
    let whole = found.iter().filter(|choice| choice.how == "one disk");
    let whole: Vec<_> = whole.map(|choice| choice.kept.clone()).collect();
    assert_eq!(whole, [[0, 2, 4], [1, 3, 5]]);
}

#[test]
fn equal_images_have_equal_identities() {
    // The second write of the unit hides the first, and a write of zeros equals no write.
    let entries = [write(0, 1, 0, 10), write(0, 2, 1, 11), write(1, 0, 2, 12)];
    let (_folder, recording) = recorded(&entries);
    let requests = Requests::read(&recording, &[]).unwrap();
    let contents = Contents::read(&recording).unwrap();
    let cut = requests.cut(20, UNIT, false);
    let identities = Identities::new(&contents, &cut);
    let of = |kept: &[u32]| identities.of(kept);
    assert_eq!(of(&[1]), of(&[0, 1]));
    assert_eq!(of(&[1]), of(&[1, 2]));
    assert_ne!(of(&[0]), of(&[1]));
    assert_ne!(of(&[]), of(&[0]));
}

#[test]
fn an_enumeration_has_each_image_once_at_its_last_cut() {
    // The states of the second cut include those of the first, which a flush does not end.
    let entries: Vec<_> = (0..8)
        .map(|unit| write(unit, 1 + unit as u8, unit, 10 + unit))
        .collect();
    let (_folder, recording) = recorded(&entries);
    let requests = Requests::read(&recording, &[]).unwrap();
    let contents = Contents::read(&recording).unwrap();
    let mut found = Enumeration::new(1 << 20);
    let (mut images, mut at_last, mut expected) =
        (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for (place, at_ns) in [5, 20, 20].into_iter().enumerate() {
        let cut = requests.cut(at_ns, UNIT, false);
        let image = |choice: &Choice| bytes(&recording, at_ns, 0, &choice.kept, 8);
        for choice in choices(&cut, Model::Reorder, 1000, 1) {
            expected.insert(image(&choice), place);
        }
        let states = found.add(&contents, &cut, Model::Reorder, 1000, 1);
        for (number, choice) in states.unwrap() {
            let image = image(&choice);
            assert_eq!(*images.entry(image.clone()).or_insert(number), number);
            assert_ne!(at_last.insert(image, place), Some(place), "{choice:?}");
        }
    }
    assert_eq!(at_last, expected);
    assert_eq!(found.different(), images.len());
    assert!((128..=256).contains(&images.len()), "{}", images.len());
    assert!(found.tried() > 400, "{}", found.tried());
}

#[test]
fn an_enumeration_takes_cuts_in_any_order() {
    // Nothing is pending at either cut, but the second write is not there at the earlier one.
    let entries = [
        write(0, 1, 0, 10),
        flush(20, 30),
        write(1, 2, 40, 50),
        flush(60, 70),
    ];
    let (_folder, recording) = recorded(&entries);
    let requests = Requests::read(&recording, &[]).unwrap();
    let contents = Contents::read(&recording).unwrap();
    let mut found = Enumeration::new(1 << 20);
    for (at_ns, number) in [(75, 0), (35, 1), (75, 0), (35, 1)] {
        let cut = requests.cut(at_ns, UNIT, false);
        let states = found.add(&contents, &cut, Model::Reorder, 10, 1).unwrap();
        let numbers: Vec<_> = states.iter().map(|state| state.0).collect();
        assert_eq!(numbers, [number], "at {at_ns}");
    }
}

#[test]
fn an_enumeration_ends_at_its_limit() {
    let entries: Vec<_> = (0..64)
        .map(|unit| write(unit, 1 + unit as u8, unit, 100 + unit))
        .collect();
    let (_folder, recording) = recorded(&entries);
    let requests = Requests::read(&recording, &[]).unwrap();
    let contents = Contents::read(&recording).unwrap();
    let cut = requests.cut(200, UNIT, false);
    let add = |most_bytes, most| {
        let mut found = Enumeration::new(most_bytes);
        let new = found.add(&contents, &cut, Model::Reorder, most, 1);
        (new.map(|choices| choices.len()), found.tried())
    };
    let (new, tried) = add(1 << 20, 50_000);
    assert_eq!(
        new,
        Err(TooMany {
            most_bytes: 1 << 20
        })
    );
    assert!(tried < 10_000, "{tried} states");
    assert_eq!(add(1 << 20, 1000), (Ok(1000), 1000));
}

#[test]
fn many_units_have_few_choices_at_a_time() {
    let entries: Vec<_> = (0..200)
        .map(|unit| write(unit, 1 + unit as u8, unit, 1000 + unit))
        .collect();
    let (_folder, recording) = recorded(&entries);
    let requests = Requests::read(&recording, &[]).unwrap();
    let cut = requests.cut(2000, UNIT, false);
    let found = choices(&cut, Model::Reorder, 24, 1);
    assert_eq!(found.len(), 24);
    let of = |how: &str| {
        let mine = found.iter().filter(|choice| choice.how == how);
        mine.map(|choice| choice.kept.len()).collect::<Vec<_>>()
    };
    assert_eq!((of("none"), of("all")), (vec![0], vec![200]));
    assert_eq!(of("prefix"), [1, 50, 100, 150]);
    assert_eq!(of("all but one"), [199; 4]);
    assert_eq!(of("only one"), [1; 3], "the first is also a prefix");
    let kept: BTreeSet<_> = found.iter().map(|choice| &choice.kept).collect();
    assert_eq!(kept.len(), 24);
}

/// What a request is drawn from: operation, first unit, units, time in flight, FUA.
type Drawn = (u8, u64, u64, u64, bool);

/// Requests that complete in turn, five nanoseconds apart.
fn entries(drawn: &[Drawn]) -> Vec<Entry> {
    let entry = |(number, &(op, unit, units, late, fua)): (usize, &Drawn)| {
        let op = [Op::Write, Op::Write, Op::Flush, Op::WriteZeroes][usize::from(op)];
        let complete_ns = 5 * (number as u64 + 1);
        let is_flush = op == Op::Flush;
        Entry {
            op,
            disk: 0,
            unit: if is_flush { 0 } else { unit },
            units: if is_flush { 0 } else { units },
            byte: number as u8 + 1,
            submit_ns: complete_ns.saturating_sub(late),
            complete_ns,
            fua: fua && op == Op::Write,
        }
    };
    drawn.iter().enumerate().map(entry).collect()
}

fn is_durable(entry: &Entry, all: &[Entry], at_ns: u64) -> bool {
    let flushes = |other: &Entry| {
        other.op == Op::Flush && other.submit_ns >= entry.complete_ns && other.complete_ns <= at_ns
    };
    all.iter().any(flushes) || entry.fua && entry.complete_ns <= at_ns
}

proptest! {
    #[test]
    fn identities_are_equal_where_images_are(
        drawn in prop::collection::vec(
            (0u8..4, 0u64..8, 1u64..3, 0u64..20, any::<bool>()), 1..24,
        ),
        // Contents repeat, and zero is one of them.
        repeats in 1u8..5,
        at in 0u64..200,
        picks in prop::array::uniform2(any::<u64>()),
    ) {
        let mut entries = entries(&drawn);
        entries.iter_mut().for_each(|entry| entry.byte %= repeats);
        let (_folder, recording) = recorded(&entries);
        let requests = Requests::read(&recording, &[]).unwrap();
        let contents = Contents::read(&recording).unwrap();
        let mut found = Vec::new();
        // Of two cuts, too: most of their images differ in what is durable.
        for (at_ns, picks) in [(at, picks[0]), (at, picks[1]), (at + 5, picks[0])] {
            let cut = requests.cut(at_ns, UNIT, false);
            let is_picked = |place: &u32| picks >> (place % 64) & 1 == 1;
            let kept: Vec<u32> = (0..cut.pending.len() as u32).filter(is_picked).collect();
            let identity = Identities::new(&contents, &cut).of(&kept);
            found.push((identity, bytes(&recording, at_ns, 0, &kept, 16)));
        }
        for (one, other) in [(0, 1), (0, 2), (1, 2)] {
            prop_assert_eq!(found[one].0 == found[other].0, found[one].1 == found[other].1);
        }
    }

    #[test]
    fn an_image_is_what_a_naive_disk_holds(
        drawn in prop::collection::vec(
            (0u8..4, 0u64..8, 1u64..3, 0u64..20, any::<bool>()), 1..24,
        ),
        at in 0u64..200,
        picks in any::<u64>(),
    ) {
        let entries = entries(&drawn);
        let (_folder, recording) = recorded(&entries);
        let requests = Requests::read(&recording, &[]).unwrap();
        let cut = requests.cut(at, UNIT, false);
        let is_picked = |place: &u32| picks >> (place % 64) & 1 == 1;
        let kept: Vec<u32> = (0..cut.pending.len() as u32).filter(is_picked).collect();
        // The naive disk: each unit in order, lost if it is pending and not kept.
        let mut disk = [0u8; 16];
        let mut place = 0;
        for (number, entry) in entries.iter().enumerate() {
            if entry.op == Op::Flush || entry.submit_ns > at {
                continue;
            }
            let parts = if entry.op == Op::Write { entry.units } else { 1 };
            let whole = entry.units / parts;
            for part in 0..parts {
                let survives = is_durable(entry, &entries, at) || {
                    prop_assert_eq!(cut.pending[place].event, number as u64);
                    place += 1;
                    kept.contains(&(place as u32 - 1))
                };
                if survives {
                    let byte = if entry.op == Op::Write { entry.byte } else { 0 };
                    let first = (entry.unit + part * whole) as usize;
                    disk[first..first + whole as usize].fill(byte);
                }
            }
        }
        prop_assert_eq!(place, cut.pending.len());
        prop_assert_eq!(bytes(&recording, at, 0, &kept, 16), disk);
        // Both ways to write the image, whole.
        let mut whole = vec![0; SIZE as usize];
        for (unit, byte) in disk.iter().enumerate() {
            whole[unit * UNIT as usize..][..UNIT as usize].fill(*byte);
        }
        let read = tempfile::NamedTempFile::new()?;
        let kept_in_memory = tempfile::NamedTempFile::new()?;
        image(&recording, &cut, 0, &kept).unwrap().export(read.as_file()).unwrap();
        let memory = Memory::read(&recording).unwrap().unwrap();
        memory.export(&cut, 0, &kept, kept_in_memory.as_file()).unwrap();
        // In place of another disk, too.
        let used = tempfile::NamedTempFile::new()?;
        std::fs::write(used.path(), vec![0xff; SIZE as usize])?;
        memory.export(&cut, 0, &kept, used.as_file()).unwrap();
        let used_before = tempfile::NamedTempFile::new()?;
        std::fs::write(used_before.path(), vec![0xff; 2 * SIZE as usize])?;
        image(&recording, &cut, 0, &kept).unwrap().export(used_before.as_file()).unwrap();
        for file in [read, kept_in_memory, used, used_before] {
            prop_assert!(std::fs::read(file.path())? == whole);
        }
    }
}
