//! Rows that wait in a small ext2, and their owners.

use super::super::{
    blocks::{Content, Use},
    state::ext2 as state,
};
use super::*;

fn own(state: &mut State, start: u64, length: u64, mapper: Mapper) -> Use {
    let kind = Kind::Content(Content::Data);
    let used = Use {
        kind,
        inode: mapper.inode,
        node: mapper.node,
    };
    state.space.claim(start, length, used);
    used
}

fn inode(inode: u32) -> Mapper {
    Mapper { inode, node: 0 }
}

/// Writes the ten blocks at 100, whose known use is `used`.
fn write(pending: &mut Pending, rows: &mut Rows, used: Option<Use>, state: &mut State) -> usize {
    let number = rows.push(crate::Row {
        inode: used.map_or(0, |used| used.inode.into()),
        ..crate::Row::data(100 << 10, 10 << 10)
    });
    state.rounds.data();
    pending.add(100..110, number, false, used, state);
    number
}

fn found(rows: &Rows) -> Vec<(u64, u64, u64)> {
    let of = |r: &crate::Row| (r.offset >> 10, r.length >> 10, r.inode);
    let mut found: Vec<_> = rows.to_vec().iter().map(of).collect();
    found.sort_unstable();
    found
}

#[test]
fn a_row_is_cut_where_its_owners_meet() {
    let (mut state, mut pending, mut rows) = (state(), Pending::default(), Rows::default());
    write(&mut pending, &mut rows, None, &mut state);
    own(&mut state, 103, 4, inode(12));
    own(&mut state, 107, 20, inode(13));
    pending.resolve((103, 4), true, &state, &mut rows);
    pending.resolve((107, 20), true, &state, &mut rows);
    assert_eq!(found(&rows), [(100, 3, 0), (103, 4, 12), (107, 3, 13)]);
}

#[test]
fn an_overwritten_row_is_doubtful_where_a_transaction_reuses_its_own_blocks() {
    for reuses_at_once in [false, true] {
        let (mut state, mut pending, mut rows) = (state(), Pending::default(), Rows::default());
        pending.reuses_at_once = reuses_at_once;
        let first = write(&mut pending, &mut rows, None, &mut state);
        let last = write(&mut pending, &mut rows, None, &mut state);
        own(&mut state, 100, 10, inode(12));
        pending.resolve((100, 10), true, &state, &mut rows);
        let doubtful = [first, last].map(|row| rows.get_mut(row).unwrap().is_doubtful);
        assert_eq!(doubtful, [reuses_at_once, false]);
    }
}

#[test]
fn a_later_file_does_not_own_what_was_written_before_it() {
    let (mut state, mut pending, mut rows) = (state(), Pending::default(), Rows::default());
    write(&mut pending, &mut rows, None, &mut state);
    (0..=COMMITS).for_each(|_| pending.committed());
    own(&mut state, 100, 10, inode(12));
    pending.resolve((100, 10), true, &state, &mut rows);
    assert_eq!(found(&rows), [(100, 10, 0)]);
}

#[test]
fn beyond_the_bound_those_that_have_waited_longest_are_given_up() {
    let (mut state, mut pending, mut rows) = (state(), Pending::default(), Rows::default());
    for _ in 0..100 {
        write(&mut pending, &mut rows, None, &mut state);
    }
    pending.drop(100, &state);
    assert_eq!(pending.rows.len(), 100);
    pending.drop(40, &state);
    own(&mut state, 100, 10, inode(12));
    let owned = pending.resolve((100, 10), true, &state, &mut rows);
    let rows = owned.into_iter().rev().map(|(row, _)| row);
    assert!(rows.eq(60..100));
}

#[test]
fn after_all_is_on_the_disk_nothing_waits() {
    let (mut state, mut pending, mut rows) = (state(), Pending::default(), Rows::default());
    write(&mut pending, &mut rows, None, &mut state);
    pending.settle();
    own(&mut state, 100, 10, inode(12));
    pending.resolve((100, 10), false, &state, &mut rows);
    assert_eq!(found(&rows), [(100, 10, 0)]);
}

#[test]
fn as_many_wait_as_may() {
    let (state, mut pending) = (state(), Pending::default());
    for number in 0..=MAX_WAITING {
        let block = number as u64;
        pending.add(block..block + 1, number, false, None, &state);
    }
    assert_eq!(
        pending.rows.len() + pending.recent.len(),
        MAX_WAITING / 2 + 1
    );
}

/// Releases blocks 102 up to 110, which inode 12 no longer maps.
fn release(pending: &mut Pending, state: &State, rows: &mut Rows) {
    let released = Released {
        start: 102,
        length: 8,
        inode: 12,
        known: state.known_at(inode(12)),
    };
    pending.release(&released, state, rows);
}

fn doubtful(rows: &Rows) -> Vec<u64> {
    let rows = rows.to_vec().into_iter().filter(|row| row.is_doubtful);
    let mut found: Vec<_> = rows.map(|row| row.offset >> 10).collect();
    found.sort_unstable();
    found
}

#[test]
fn without_a_journal_blocks_of_a_removed_file_stay_its_own_as_far_as_they_were_known_to_be() {
    let (mut state, mut pending, mut rows) = (state(), Pending::default(), Rows::default());
    let first = own(&mut state, 100, 10, inode(12));
    write(&mut pending, &mut rows, Some(first), &mut state);
    // The inode still maps the blocks: the first write is its own.
    state.written(&[inode(12)]);
    write(&mut pending, &mut rows, Some(first), &mut state);
    // It maps two of them: the second write may be another file's.
    release(&mut pending, &state, &mut rows);
    let cut = [(100, 2, 12), (100, 2, 12), (102, 8, 12), (102, 8, 12)];
    assert_eq!(found(&rows), cut);
    assert_eq!(doubtful(&rows), [102]);
    own(&mut state, 104, 6, inode(13));
    pending.resolve((104, 6), false, &state, &mut rows);
    let of_another = found(&rows).into_iter().filter(|r| r.2 == 13);
    assert_eq!(of_another.collect::<Vec<_>>(), [(104, 6, 13)]);
    assert_eq!(doubtful(&rows), [102]);
}

#[test]
fn without_a_journal_an_inode_written_before_its_data_tells_of_it_once_a_flush_has_come() {
    for is_flushed in [false, true] {
        let (mut state, mut pending, mut rows) = (state(), Pending::default(), Rows::default());
        let first = own(&mut state, 100, 10, inode(12));
        state.written(&[inode(12)]);
        write(&mut pending, &mut rows, Some(first), &mut state);
        if is_flushed {
            state.rounds.flush();
        }
        own(&mut state, 100, 10, inode(13));
        pending.resolve((100, 10), false, &state, &mut rows);
        let owner = if is_flushed { 12 } else { 13 };
        assert_eq!(found(&rows), [(100, 10, owner)]);
    }
}

#[test]
fn without_a_journal_a_node_is_believed_with_its_inode_in_any_order() {
    let (mut state, mut pending, mut rows) = (state(), Pending::default(), Rows::default());
    let node = Mapper {
        inode: 12,
        node: 50,
    };
    let of_node = Use {
        kind: Kind::Pointers(1, Content::Data),
        inode: 12,
        node: 0,
    };
    state.space.claim(50, 1, of_node);
    state.written(&[inode(12)]);
    write(&mut pending, &mut rows, None, &mut state);
    own(&mut state, 100, 10, node);
    state.written(&[node]);
    pending.resolve((100, 10), false, &state, &mut rows);
    assert_eq!(found(&rows), [(100, 10, 12)]);
    // The node already had another owner, whose inode is written only now.
    own(&mut state, 100, 10, inode(13));
    pending.resolve((100, 10), false, &state, &mut rows);
    assert_eq!(found(&rows), [(100, 10, 13)]);
    // If the first inode is written again together with the node, it keeps the node.
    own(&mut state, 100, 10, node);
    state.written(&[inode(12), node]);
    pending.resolve((100, 10), false, &state, &mut rows);
    own(&mut state, 100, 10, inode(13));
    pending.resolve((100, 10), false, &state, &mut rows);
    assert_eq!(found(&rows), [(100, 10, 12)]);
}

#[test]
fn of_what_was_written_twice_the_first_is_the_owners_only_if_no_other_can_have_had_it() {
    for (has_journal, is_later, expected) in [
        (true, false, (12, vec![])),
        (true, true, (0, vec![])),
        (false, false, (12, vec![100])),
        (false, true, (0, vec![])),
    ] {
        let (mut state, mut pending, mut rows) = (state(), Pending::default(), Rows::default());
        let first = write(&mut pending, &mut rows, None, &mut state);
        if is_later {
            pending.committed();
            state.rounds.flush();
        }
        let second = write(&mut pending, &mut rows, None, &mut state);
        own(&mut state, 100, 10, inode(12));
        pending.resolve((100, 10), has_journal, &state, &mut rows);
        let rows_of = rows.to_vec();
        assert_eq!(rows_of[second].inode, 12);
        assert!(!rows_of[second].is_doubtful);
        assert_eq!((rows_of[first].inode, doubtful(&rows)), expected);
    }
}

#[test]
fn data_is_never_a_node() {
    let (mut state, mut pending, mut rows) = (state(), Pending::default(), Rows::default());
    write(&mut pending, &mut rows, None, &mut state);
    let node = Use {
        kind: Kind::Pointers(1, Content::Data),
        inode: 12,
        node: 0,
    };
    state.space.claim(100, 1, node);
    pending.resolve((100, 1), false, &state, &mut rows);
    let structures = rows.to_vec().into_iter().map(|row| row.structure);
    assert!(structures.into_iter().all(|s| s == Structure::FileData));
}
