//! Which of the pending units a power cut keeps.

use crate::Cut;
use std::collections::BTreeSet;

/// What a device promises beyond flushes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Model {
    /// Nothing: pending units may reach the medium in any order.
    Reorder,
    /// Pending units reach the medium in the order in which they came.
    InOrder,
}

/// The pending units that a state keeps, by their places in [`Cut::pending`], and why it was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// How it was chosen: `none`, `all`, `prefix`, `all but one`, `only one` or `random`.
    pub how: &'static str,
    /// Places of the units that reached the medium, in order.
    pub kept: Vec<u32>,
}

/// Returns at most `most` different subsets of the pending units: first the ones that find most
/// (nothing, everything, each prefix, all but one, only one), then random ones of `seed`. Where
/// there are too many, each kind gets an even share.
pub fn choices(cut: &Cut<'_>, model: Model, most: usize, seed: u64) -> Vec<Choice> {
    let count = cut.pending.len() as u32;
    let all: Vec<u32> = (0..count).collect();
    let mut kinds: Vec<(&'static str, Vec<Vec<u32>>)> = vec![
        ("none", vec![Vec::new()]),
        ("all", vec![all.clone()]),
        ("prefix", (1..count).map(|end| (0..end).collect()).collect()),
    ];
    if model == Model::Reorder {
        let without = |one: u32| all.iter().copied().filter(|&each| each != one).collect();
        kinds.push(("all but one", (0..count).map(without).collect()));
        kinds.push(("only one", (0..count).map(|one| vec![one]).collect()));
    }
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    let share = most / kinds.len();
    for (how, subsets) in kinds {
        for kept in spread(subsets, share.max(1)) {
            if found.len() < most && seen.insert(kept.clone()) {
                found.push(Choice { how, kept });
            }
        }
    }
    if model == Model::Reorder {
        add_random(&all, most, seed, &mut seen, &mut found);
    }
    found
}

fn add_random(
    all: &[u32],
    most: usize,
    seed: u64,
    seen: &mut BTreeSet<Vec<u32>>,
    found: &mut Vec<Choice>,
) {
    let mut random = fastrand::Rng::with_seed(seed);
    // Few units have few subsets: stop when draws bring nothing new.
    let mut misses = 0;
    while found.len() < most && misses < 64 {
        let share = random.f64();
        let kept: Vec<u32> = all
            .iter()
            .copied()
            .filter(|_| random.f64() < share)
            .collect();
        if seen.insert(kept.clone()) {
            let how = "random";
            found.push(Choice { how, kept });
            misses = 0;
        } else {
            misses += 1;
        }
    }
}

/// Returns at most `most` of the subsets, evenly spread.
fn spread(subsets: Vec<Vec<u32>>, most: usize) -> Vec<Vec<u32>> {
    let count = subsets.len();
    if count <= most {
        return subsets;
    }
    let chosen: BTreeSet<usize> = (0..most).map(|number| number * count / most).collect();
    let numbered = subsets.into_iter().enumerate();
    numbered
        .filter(|(place, _)| chosen.contains(place))
        .map(|(_, subset)| subset)
        .collect()
}
