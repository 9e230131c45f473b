//! The formulas beside published figures of write amplification under uniform writes, and the order
//! of collections that follows from them. See the crate's documentation for the sources.
#![allow(missing_docs, clippy::unwrap_used, clippy::float_cmp)]

mod common;

use common::{assert_close, choices, fifo, greedy, page_map, steady, uniform};
use fscost_ssd::Collection;

/// Random; FIFO; greedy with 32, 64, 128, 256 and 1,024 units in a block; 2, 5, 10 and 30 choices
/// with 64 units.
type Row = [f64; 11];

/// Published values by the share of logical units, computed independently of this crate.
const TABLE: [(f64, Row); 9] = [
    (
        0.93,
        [
            14.2857, 7.3177, 6.0571, 6.6155, 6.9450, 7.1240, 7.2682, 9.6354, 7.4050, 6.8939, 6.6733,
        ],
    ),
    (
        1.0 / 1.07,
        [
            15.2857, 7.8172, 6.3474, 7.0099, 7.3916, 7.5969, 7.7605, 10.2772, 7.8746, 7.3230,
            7.0837,
        ],
    ),
    (
        0.88,
        [
            8.3333, 4.3480, 3.8776, 4.0968, 4.2174, 4.2813, 4.3311, 5.7539, 4.5180, 4.2389, 4.1236,
        ],
    ),
    (
        1.0 / 1.12,
        [
            9.3333, 4.8463, 4.2709, 4.5307, 4.6833, 4.7629, 4.8251, 6.4135, 5.0143, 4.6973, 4.5654,
        ],
    ),
    (
        0.8,
        [
            5.0, 2.6927, 2.5136, 2.5993, 2.6449, 2.6684, 2.6866, 3.5330, 2.8320, 2.6754, 2.6127,
        ],
    ),
    (
        0.72,
        [
            3.5714, 1.9916, 1.8965, 1.9425, 1.9667, 1.9791, 1.9885, 2.5732, 2.0984, 1.9932, 1.9516,
        ],
    ),
    (
        1.0 / 1.28,
        [
            4.5714, 2.4814, 2.3303, 2.4028, 2.4412, 2.4610, 2.4762, 3.2453, 2.6122, 2.4711, 2.4147,
        ],
    ),
    (
        0.5,
        [
            2.0, 1.2550, 1.2233, 1.2389, 1.2469, 1.2509, 1.2540, 1.5262, 1.3081, 1.2612, 1.2428,
        ],
    ),
    (
        1.0 / 1.5,
        [
            3.0, 1.7158, 1.6488, 1.6808, 1.6982, 1.7069, 1.7136, 2.1896, 1.8059, 1.7213, 1.6879,
        ],
    ),
];

#[test]
fn closed_form_the_formulas_give_the_published_table() {
    for (rho, published) in TABLE {
        let computed = [
            choices(rho, 64, 1),
            fifo(rho, &[(1.0, 1.0)]),
            greedy(rho, 32),
            greedy(rho, 64),
            greedy(rho, 128),
            greedy(rho, 256),
            greedy(rho, 1024),
            choices(rho, 64, 2),
            choices(rho, 64, 5),
            choices(rho, 64, 10),
            choices(rho, 64, 30),
        ];
        for (column, (computed, published)) in computed.into_iter().zip(published).enumerate() {
            assert_close(
                &format!("{rho}, column {column}"),
                computed,
                published,
                1e-4,
            );
        }
    }
}

/// 256 GiB of NAND, sold with as many decimal gigabytes.
#[test]
fn closed_form_the_formulas_give_the_values_of_marketed_capacities() {
    for (gigabytes, published) in [
        (256.0, 7.2549),
        (250.0, 5.5855),
        (240.0, 4.0629),
        (200.0, 2.0269),
    ] {
        let rho = gigabytes * 1e9 / (256.0 * 1024.0 * 1024.0 * 1024.0);
        assert_close(
            &format!("{gigabytes} GB"),
            greedy(rho, 256),
            published,
            1e-4,
        );
    }
}

/// Agarwal and Marrow's estimate is rough: below every collection, and closer the more is spare.
#[test]
fn closed_form_collections_are_ordered_under_uniform_writes() {
    let (blocks, spare) = (1024, 0.2);
    let measured = |b, collection| {
        let mut device = page_map(blocks, b, 1.0 - spare, collection);
        steady(&mut device, 6, 20, uniform(7))
    };
    let ordered = [
        measured(32, Collection::Greedy),
        measured(64, Collection::Greedy),
        measured(64, Collection::Choices(30)),
        measured(64, Collection::Choices(10)),
        measured(64, Collection::Choices(2)),
        measured(64, Collection::Random),
    ];
    assert!(ordered.is_sorted(), "{ordered:?}");
    let of_fifo = measured(64, Collection::Fifo);
    assert!(measured(256, Collection::Greedy) < of_fifo, "{of_fifo}");
    let agarwal_marrow = 1.0 / (2.0 * spare);
    assert!(agarwal_marrow < ordered[0], "{agarwal_marrow}");
}
