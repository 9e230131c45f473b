//! Invariants for any stream, with a naive model of the map beside the real ones.
#![allow(missing_docs, clippy::unwrap_used, clippy::float_cmp)]

use fscost_ssd::{
    Association, BlockMap, Charge, Charges, ChargesByTag, Collection, Counters, Device, Geometry,
    LogBlockMap, LogBlocks, Mapping, NoCharges, PageMap, PageMapOptions, Scaled, Separation,
    Translation, UNATTRIBUTED, Wear, Write,
};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};

const UNITS: u32 = 300;

#[derive(Debug, Clone)]
enum Step {
    Write(u32, u32, u16, u8),
    Trim(u32, u32, u16),
    Flush(u16),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let range = (0..UNITS, 1..40u32).prop_map(|(first, count)| (first, count.min(UNITS - first)));
    let step = prop_oneof![
        6 => (range.clone(), 0..5u16, 0..3u8).prop_map(|((first, count), tag, stream)| Step::Write(first, count, tag, stream)),
        1 => (range, 0..5u16).prop_map(|((first, count), tag)| Step::Trim(first, count, tag)),
        1 => (0..5u16).prop_map(Step::Flush),
    ];
    prop::collection::vec(step, 1..400)
}

fn collections() -> impl Strategy<Value = Collection> {
    prop_oneof![
        Just(Collection::Greedy),
        Just(Collection::Fifo),
        Just(Collection::Random),
        (1..5u32).prop_map(Collection::Choices),
    ]
}

fn page_options() -> impl Strategy<Value = PageMapOptions> {
    (
        collections(),
        any::<bool>(),
        1..4u8,
        1..3u32,
        prop::option::of(1..6u32),
        any::<u64>(),
    )
        .prop_map(
            |(collection, split, streams, reserved_blocks, levelling_gap, seed)| PageMapOptions {
                collection,
                separation: if split {
                    Separation::Collected
                } else {
                    Separation::Mixed
                },
                streams,
                reserved_blocks,
                levelling_gap,
                seed,
            },
        )
}

fn mappings() -> impl Strategy<Value = Mapping> {
    prop_oneof![
        page_options().prop_map(Mapping::Page),
        (0..4u32).prop_map(|open_blocks| Mapping::Block { open_blocks }),
        (any::<bool>(), 1..6u32).prop_map(|(full, log_blocks)| Mapping::Log(LogBlocks {
            association: if full {
                Association::Full
            } else {
                Association::Block
            },
            log_blocks,
        })),
    ]
}

fn geometry(units_per_page: u32) -> Geometry {
    Geometry {
        unit_bytes: 4096,
        units_per_page,
        units_per_block: 16,
        blocks: 34,
        logical_units: UNITS,
    }
}

/// Checks that no unit is programmed twice without an erase, and that a copy comes from a place
/// that was programmed.
#[derive(Debug, Clone, Default)]
struct Nand {
    programmed: HashSet<u32>,
}

impl Nand {
    fn program(&mut self, from: u32, units: u32) {
        for place in from..from + units {
            assert!(
                self.programmed.insert(place),
                "{place} programmed twice without an erase"
            );
        }
    }
}

impl Charge for Nand {
    fn written(&mut self, physical: u32, units: u32, _: u16) {
        self.program(physical, units);
    }
    fn padded(&mut self, physical: u32, units: u32, _: u16) {
        self.program(physical, units);
    }
    fn invalidated(&mut self, physical: u32, units: u32, _: u16) {
        assert!((physical..physical + units).all(|place| self.programmed.contains(&place)));
    }
    fn moved(&mut self, from: u32, to: u32, units: u32) {
        assert!((from..from + units).all(|place| self.programmed.contains(&place)));
        self.program(to, units);
    }
    fn caused(&mut self, _: u32, _: impl Iterator<Item = (u32, u32)>) {}
    fn erased(&mut self, physical: u32, units: u32) {
        for place in physical..physical + units {
            self.programmed.remove(&place);
        }
    }
}

fn model(geometry: Geometry, mapping: Mapping, buffer_units: u32) -> Scaled {
    Scaled {
        geometry,
        mapping,
        buffer_units,
        blocks_beyond: 0,
        cold_blocks: 0,
    }
}

fn charges_of(charges: &ChargesByTag, tag: u16) -> Charges {
    let totals = charges.totals();
    totals.get(usize::from(tag)).copied().unwrap_or_default()
}

fn run<C: Charge + 'static>(device: &mut Device<C>, steps: &[Step]) {
    let bytes = |units: u32| u64::from(units) * 4096;
    for step in steps {
        match *step {
            Step::Write(first, count, tag, stream) => device
                .write(bytes(first), bytes(count), tag, stream)
                .unwrap(),
            Step::Trim(first, count, tag) => device.trim(bytes(first), bytes(count), tag).unwrap(),
            Step::Flush(tag) => device.flush(tag),
        }
    }
    device.flush(0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_programmed_twice_without_an_erase(mapping in mappings(), units_per_page in prop::sample::select(vec![1u32, 4]), buffer in 0..50u32, steps in steps()) {
        let mut device = Device::new(&model(geometry(units_per_page), mapping, buffer), Nand::default()).unwrap();
        run(&mut device, &steps);
    }

    #[test]
    fn charges_add_up_to_the_counters(mapping in mappings(), units_per_page in prop::sample::select(vec![1u32, 4]), buffer in 0..50u32, steps in steps()) {
        let geometry = geometry(units_per_page);
        let mut device = Device::new(&model(geometry, mapping, buffer), ChargesByTag::new(geometry.physical_units())).unwrap();
        run(&mut device, &steps);
        let counters = device.counters();
        let sum = |field: fn(&Charges) -> u64| device.charges().totals().iter().map(field).sum::<u64>();
        prop_assert_eq!(sum(|c| c.written_units), counters.written_units);
        prop_assert_eq!(sum(|c| c.padded_units), counters.padded_units);
        prop_assert_eq!(sum(|c| c.moved_units), counters.copied_units);
        prop_assert_eq!(sum(|c| c.caused_units), counters.copied_units);
        prop_assert_eq!(charges_of(device.charges(), UNATTRIBUTED).caused_units >= counters.levelled_units, true);
        prop_assert_eq!(counters.host_units, counters.written_units + counters.absorbed_units);
    }

    #[test]
    fn charges_change_nothing(mapping in mappings(), buffer in 0..50u32, steps in steps()) {
        let geometry = geometry(1);
        let mut plain = Device::new(&model(geometry, mapping, buffer), NoCharges).unwrap();
        let mut charged = Device::new(&model(geometry, mapping, buffer), ChargesByTag::new(geometry.physical_units())).unwrap();
        run(&mut plain, &steps);
        run(&mut charged, &steps);
        prop_assert_eq!(plain.counters(), charged.counters());
        prop_assert_eq!(plain.erases(), charged.erases());
    }

    /// The content of each logical unit equals that of a naive map, whatever was copied in between,
    /// and no two logical units share a place.
    #[test]
    fn no_valid_unit_is_lost(
        mapping in mappings(),
        units_per_page in prop::sample::select(vec![1u32, 4]),
        steps in steps(),
    ) {
        let geometry = geometry(units_per_page);
        match mapping {
            Mapping::Page(options) => {
                let mut device = PageMap::new(geometry, options, Content::default()).unwrap();
                assert_naive(&mut device, &steps);
                let mapped = (0..UNITS).filter(|&unit| device.physical(unit).is_some()).count();
                prop_assert_eq!(device.valid_units().sum::<u32>() as usize, mapped);
            }
            Mapping::Block { open_blocks } => {
                let device = BlockMap::new(geometry, open_blocks, Content::default());
                assert_naive(&mut device.unwrap(), &steps);
            }
            Mapping::Log(options) => {
                let device = LogBlockMap::new(geometry, options, Content::default());
                assert_naive(&mut device.unwrap(), &steps);
            }
        }
    }
}

/// Content of each physical unit: the number of the write that programmed it, carried along by
/// copies.
#[derive(Debug, Clone, Default)]
struct Content {
    held: HashMap<u32, u16>,
}

impl Charge for Content {
    fn written(&mut self, physical: u32, units: u32, tag: u16) {
        self.held
            .extend((physical..physical + units).map(|place| (place, tag)));
    }
    fn padded(&mut self, _: u32, _: u32, _: u16) {}
    fn invalidated(&mut self, _: u32, _: u32, _: u16) {}
    fn moved(&mut self, from: u32, to: u32, units: u32) {
        for at in 0..units {
            let content = self.held[&(from + at)];
            self.held.insert(to + at, content);
        }
    }
    fn caused(&mut self, _: u32, _: impl Iterator<Item = (u32, u32)>) {}
    fn erased(&mut self, physical: u32, units: u32) {
        for place in physical..physical + units {
            self.held.remove(&place);
        }
    }
}

fn assert_naive(device: &mut impl Translation<Charges = Content>, steps: &[Step]) {
    let mut naive = [None; UNITS as usize];
    for (number, step) in (0..).zip(steps) {
        match *step {
            Step::Write(first, count, _, stream) => {
                let write = Write {
                    first,
                    count,
                    tag: number,
                    stream,
                };
                device.write_all(&[write]);
                naive[first as usize..(first + count) as usize].fill(Some(number));
            }
            Step::Trim(first, count, tag) => {
                device.trim(first, count, tag);
                naive[first as usize..(first + count) as usize].fill(None);
            }
            Step::Flush(tag) => device.flush(tag),
        }
        let places: Vec<_> = (0..UNITS).map(|unit| device.physical(unit)).collect();
        let held = &device.charges().held;
        let found = places.iter().map(|place| place.map(|at| held[&at]));
        assert!(found.eq(naive), "after step {number}: {step:?}");
        let distinct: HashSet<_> = places.iter().flatten().collect();
        assert_eq!(distinct.len(), places.iter().flatten().count());
    }
    let counters: Counters = device.counters();
    let erases = device.erases().iter().map(|&count| u64::from(count));
    assert_eq!(counters.erases, erases.sum::<u64>());
}

#[test]
fn static_levelling_wears_blocks_that_hold_cold_data() {
    let wear = |levelling_gap| {
        let options = PageMapOptions {
            levelling_gap,
            ..PageMapOptions::default()
        };
        let geometry = Geometry {
            unit_bytes: 4096,
            units_per_page: 1,
            units_per_block: 64,
            blocks: 128,
            logical_units: 6000,
        };
        let mut device = PageMap::new(geometry, options, NoCharges).unwrap();
        device.write_all(&[Write {
            first: 0,
            count: 6000,
            tag: 0,
            stream: 0,
        }]);
        for round in 0..300_000u32 {
            device.write_all(&[Write {
                first: round.wrapping_mul(2_654_435_761) % 600,
                count: 1,
                tag: 0,
                stream: 0,
            }]);
        }
        let moves = device.counters().levelled_units / 64;
        assert!(
            moves * 8 <= device.counters().erases,
            "{moves} moves: levelling must not follow itself"
        );
        assert_eq!(moves > 0, levelling_gap.is_some());
        Wear::of(device.erases())
    };
    let (without, with) = (wear(None), wear(Some(10)));
    assert_eq!(
        without.min_erases, 0,
        "cold blocks stay where they are: {without:?}"
    );
    // Wear-levelling factor (JESD218).
    let factor = |wear: &Wear| f64::from(wear.max_erases) / wear.mean_erases;
    assert!(factor(&without) > 2.5, "{without:?}");
    assert!(with.min_erases > 0 && factor(&with) < 1.6, "{with:?}");
}

#[test]
fn a_flush_pads_the_open_page_and_a_buffer_absorbs_rewrites() {
    let options = Mapping::Page(PageMapOptions::default());
    let mut device = Device::new(&model(geometry(4), options, 0), NoCharges).unwrap();
    for _ in 0..10 {
        device.write(0, 512, 1, 0).unwrap();
        device.flush(1);
    }
    assert_eq!(
        (
            device.counters().written_units,
            device.counters().padded_units
        ),
        (10, 30),
        "512 bytes cost a page each"
    );

    let mut device = Device::new(&model(geometry(4), options, 16), NoCharges).unwrap();
    for _ in 0..10 {
        device.write(0, 512, 1, 0).unwrap();
    }
    device.flush(1);
    let counters = device.counters();
    assert_eq!(
        (
            counters.absorbed_units,
            counters.written_units,
            counters.padded_units
        ),
        (9, 1, 3)
    );
}

#[test]
fn a_request_beyond_the_end_is_an_error() {
    let mut device = Device::new(
        &model(geometry(1), Mapping::Block { open_blocks: 1 }, 0),
        NoCharges,
    )
    .unwrap();
    let error = device
        .write(u64::from(UNITS) * 4096 - 1, 2, 0, 0)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "a request ends at unit 301, and the device has 300"
    );
    assert!(device.trim(u64::MAX - 100_000, 90_000, 0).is_err());
}

/// Copies are charged to the writer that causes them by overwriting, and counted as moves of the
/// data's owner.
#[test]
fn copies_are_caused_by_who_overwrote_and_moved_for_who_owns() {
    let (owner, writer) = (1, 2);
    let geometry = Geometry {
        unit_bytes: 4096,
        units_per_page: 1,
        units_per_block: 64,
        blocks: 128,
        logical_units: 6000,
    };
    let device = |collection| {
        let options = PageMapOptions {
            collection,
            ..PageMapOptions::default()
        };
        let charges = ChargesByTag::new(geometry.physical_units());
        PageMap::new(geometry, options, charges).unwrap()
    };
    let write = |first, count, tag| Write {
        first,
        count,
        tag,
        stream: 0,
    };
    let (mut device, fifo) = (device(Collection::Greedy), device(Collection::Fifo));
    device.write_all(&[write(0, 6000, owner)]);
    // Every other unit, so that each block keeps some of the owner's.
    for round in 0..100_000u32 {
        let unit = round.wrapping_mul(2_654_435_761) % 3000 * 2;
        device.write_all(&[write(unit, 1, writer)]);
    }
    let [owned, wrote] = [owner, writer].map(|tag| charges_of(device.charges(), tag));
    assert_eq!(owned.caused_units, 0);
    assert_eq!(wrote.caused_units, device.counters().copied_units);
    assert!(owned.moved_units > 3000, "{owned:?}");
    assert!(wrote.moved_units > 0, "{wrote:?}");

    // FIFO moves all data in each round, of which one unit is the writer's.
    let mut device = fifo;
    device.write_all(&[write(0, 6000, owner)]);
    for _ in 0..100_000 {
        device.write_all(&[write(7, 1, writer)]);
    }
    let [owned, wrote] = [owner, writer].map(|tag| charges_of(device.charges(), tag));
    let moved = owned.moved_units + wrote.moved_units;
    assert_eq!(moved, device.counters().copied_units);
    assert!(wrote.moved_units * 1000 < moved, "{wrote:?} of {moved}");
}
