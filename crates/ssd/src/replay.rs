//! Replay of a workload on a device until its effect on the device is steady.

use crate::{
    Charge, Charges, ChargesByTag, Counters, Device, Error, Geometry, Kind, Mapping, NoCharges,
    Scaled, Spec, Step, UNATTRIBUTED, Workload, Write,
    holds::Holds,
    variation::{Roaming, Variation},
};
use std::{
    collections::VecDeque,
    sync::atomic::{AtomicBool, Ordering},
};

/// Number of rounds that must agree with each other, as in SNIA's Performance Test Specification.
const STEADY_ROUNDS: usize = 5;
/// Minimum units that a round writes to a page-mapped device, as a divisor of all units.
const PAGE_ROUND_DIVISOR: u64 = 4;
/// Units after which a round ends, in units that take part: programmed units, or trimmed ones. A
/// round of a workload that trims or copies far more than it writes ends there: its time would grow
/// with the square of the disk. Without page mapping, all rounds end there, so that blocks have
/// been erased often enough to compare them.
const TURNS_PER_ROUND: u64 = 4;
/// Largest difference between steady rounds, as a share of their mean (SNIA allows 20 %, too much
/// for three digits).
const MOST_EXCURSION: f64 = 0.02;
/// Largest change of the best-fit line over the steady rounds, as a share of their mean (SNIA: 10
/// %).
const MOST_SLOPE: f64 = 0.01;

/// Maximum units that are filled at once, so that a stopped replay ends soon.
const FILL_UNITS: u64 = 1 << 16;

/// Options of a replay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Share of logical units that hold data when the workload begins. Units that the workload does
    /// not write are filled in ascending order with data that is never rewritten.
    pub fill: f64,
    /// Maximum rounds. A round writes at least a quarter of the device.
    pub max_rounds: u32,
    /// True to keep charges by tag.
    pub by_tag: bool,
    /// How passes differ.
    pub repeat: Repeat,
    /// Seed of the differences.
    pub seed: u64,
}

/// How the passes of a workload differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// Each writes the same units in the same order.
    Exact,
    /// Each writes other units of the same regions. Block mapping is an exception: what it copies
    /// does not depend on earlier passes.
    Varied,
    /// As `Varied`; in addition, what a pass writes once, outside of such regions, lies elsewhere
    /// on the disk of a page-mapped device each time: an upper end for a file system that allocates.
    Roaming,
}

/// Effect of a workload on a device. `counted` and `charges` cover the last rounds, which agree
/// with each other if `is_steady`; `erases` covers all passes.
#[derive(Debug, Clone)]
pub struct Replay {
    /// Scaled model of the device.
    pub scaled: Scaled,
    /// Number of passes of the workload.
    pub passes: u64,
    /// Number of passes that `counted` and `charges` cover.
    pub counted_passes: u64,
    /// True if the last rounds agree.
    pub is_steady: bool,
    /// Totals of the counted passes.
    pub counted: Counters,
    /// Charges of the counted passes, by tag. Copies that no write made necessary are charged to
    /// [`UNATTRIBUTED`].
    pub charges: Vec<(u16, Charges)>,
    /// Erases of each block in all passes.
    pub erases: Vec<u32>,
    /// Nominal spare: (physical − logical) ÷ physical.
    pub nominal_spare: f64,
    /// Share of physical units that held no data, excluding the mapping's reserved blocks.
    pub effective_spare: f64,
    /// Number of units that hold data.
    pub mapped_units: u64,
    /// Number of units that were filled before the workload began.
    pub filled_units: u64,
    /// Number of units that passes exchange; 0 if each pass is the same.
    pub varied_units: u64,
    /// Number of units that a pass writes where it may choose the place anew; 0 for
    /// [`Repeat::Exact`].
    pub roaming_units: u64,
}

/// Replays a workload on a device of the disk's size: its setup once, then the fill, then its cycle
/// until steady. Another thread can stop it.
pub fn replay(
    spec: &Spec,
    workload: &Workload,
    options: &Options,
    is_stopped: &AtomicBool,
) -> Result<Replay, Error> {
    let scaled = spec.scaled(workload.disk_bytes, workload.extent)?;
    let scaled = scaled.filled(options.fill);
    if options.by_tag {
        let charges = ChargesByTag::new(scaled.geometry.physical_units());
        run(spec, scaled, workload, options, charges, is_stopped)
    } else {
        run(spec, scaled, workload, options, NoCharges, is_stopped)
    }
}

/// Totals at the end of a round.
#[derive(Debug, Clone)]
struct Reading {
    passes: u64,
    counters: Counters,
    charges: Vec<Charges>,
}

fn run<C: Charge + 'static>(
    spec: &Spec,
    scaled: Scaled,
    workload: &Workload,
    options: &Options,
    charges: C,
    is_stopped: &AtomicBool,
) -> Result<Replay, Error> {
    let variation = variation(&scaled, workload, options, is_stopped)?;
    let roaming_units = variation.as_ref().map_or(0, Variation::roaming_units);
    let mut player = Player {
        is_stopped,
        device: Device::new(&scaled, charges)?,
        flushes: !spec.is_power_loss_protected,
        variation: variation.filter(|found| !found.is_exact()),
    };
    let mut holds = Holds::new(scaled.geometry.logical_units);
    player.play(&workload.setup)?;
    holds.play(&workload.setup);
    let filled_units = player.fill(&mut holds, workload, options.fill)?;
    player.device.flush(UNATTRIBUTED);
    let before = player.device.erases().to_vec();
    let mut readings = VecDeque::from([player.reading(0)]);
    let (mut passes, mut is_steady) = (0, false);
    let round = Round::of(&scaled, workload, filled_units);
    for _ in 0..options.max_rounds.max(1) {
        passes += player.round(workload, &round)?;
        player.device.settle();
        readings.push_back(player.reading(passes));
        if readings.len() > STEADY_ROUNDS + 1 {
            readings.pop_front();
        }
        is_steady = workload.cycle_units() == 0 || is_level(&readings);
        if is_steady {
            break;
        }
    }
    holds.play(&workload.cycle);
    let (first, last) = (&readings[0], &readings[readings.len() - 1]);
    let erases = player.device.erases().iter();
    let mapped_units = holds.count();
    Ok(Replay {
        scaled,
        passes,
        counted_passes: last.passes - first.passes,
        is_steady,
        counted: last.counters - first.counters,
        charges: differences(&first.charges, &last.charges),
        erases: erases
            .zip(&before)
            .map(|(after, before)| after - before)
            .collect(),
        nominal_spare: scaled.nominal_spare(),
        effective_spare: scaled.effective_spare(mapped_units),
        mapped_units,
        filled_units,
        varied_units: player
            .variation
            .map_or(0, |found| found.units().len() as u64),
        roaming_units,
    })
}

/// Returns the number of logical units that hold data.
fn held_units(geometry: &Geometry, fill: f64) -> u64 {
    (f64::from(geometry.logical_units) * fill.clamp(0.0, 1.0)) as u64
}

/// Returns what can differ between passes; `None` if nothing may.
fn variation(
    scaled: &Scaled,
    workload: &Workload,
    options: &Options,
    is_stopped: &AtomicBool,
) -> Result<Option<Variation>, Error> {
    let roaming = match (options.repeat, scaled.mapping) {
        (Repeat::Exact, _) | (_, Mapping::Block { .. }) => return Ok(None),
        (_, Mapping::Log(_)) => Roaming::Never,
        (Repeat::Varied, _) => Roaming::Counted,
        (Repeat::Roaming, _) => Roaming::Varied {
            held_units: held_units(&scaled.geometry, options.fill),
        },
    };
    Variation::of(
        workload,
        &scaled.geometry,
        roaming,
        options.seed,
        is_stopped,
    )
    .map(Some)
}

/// Bounds of a round: it ends with the pass that reaches one of them.
struct Round {
    passes: u64,
    /// Units programmed, or units trimmed.
    units: u64,
    trimmed_by_pass: u64,
}

impl Round {
    fn of(scaled: &Scaled, workload: &Workload, filled_units: u64) -> Round {
        let physical = scaled.geometry.physical_units();
        let (written, taking_part) = match scaled.mapping {
            Mapping::Page(_) => (physical / PAGE_ROUND_DIVISOR, physical),
            // Blocks of cold data are neither collected nor merged.
            Mapping::Block { .. } | Mapping::Log(_) => {
                let taking_part = physical - filled_units.min(physical - 1);
                (TURNS_PER_ROUND * taking_part, taking_part)
            }
        };
        let trims = workload.cycle.iter().filter(|s| s.kind == Kind::Trim);
        Round {
            passes: match workload.cycle_units() {
                0 => 1,
                of_pass => written.div_ceil(of_pass),
            },
            units: TURNS_PER_ROUND * taking_part,
            trimmed_by_pass: trims.map(|step| u64::from(step.count)).sum(),
        }
    }
}

/// True if the write amplifications of the last rounds agree.
fn is_level(readings: &VecDeque<Reading>) -> bool {
    if readings.len() <= STEADY_ROUNDS {
        return false;
    }
    let rounds = readings.iter().zip(readings.iter().skip(1));
    let values: Vec<f64> = rounds
        .filter_map(|(before, after)| (after.counters - before.counters).write_amplification())
        .collect();
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let most = values.iter().copied().fold(f64::MIN, f64::max);
    let least = values.iter().copied().fold(f64::MAX, f64::min);
    // Least squares over 0, 1, 2, …
    let middle = (count - 1.0) / 2.0;
    let offsets = || (0..values.len()).map(|at| at as f64 - middle);
    let products: f64 = offsets().zip(&values).map(|(x, y)| x * (y - mean)).sum();
    let squares: f64 = offsets().map(|x| x * x).sum();
    let rise = (products / squares * (count - 1.0)).abs();
    most - least <= MOST_EXCURSION * mean && rise <= MOST_SLOPE * mean
}

struct Player<'a, C> {
    is_stopped: &'a AtomicBool,
    device: Device<C>,
    flushes: bool,
    variation: Option<Variation>,
}

impl<C: Charge + 'static> Player<'_, C> {
    fn play(&mut self, steps: &[Step]) -> Result<(), Error> {
        for step in steps {
            self.go_on()?;
            match step.kind {
                Kind::Write => {
                    let write = Write::new(step.first, step.count, step.tag);
                    self.device.write_units(write)?;
                }
                Kind::Trim => self.device.trim_units(step.first, step.count, step.tag)?,
                Kind::Flush if self.flushes => self.device.flush(step.tag),
                Kind::Flush => {}
            }
        }
        Ok(())
    }

    /// Plays a round. Returns the number of its passes.
    fn round(&mut self, workload: &Workload, round: &Round) -> Result<u64, Error> {
        let before = self.device.counters().programmed_units();
        for passes in 1..round.passes {
            self.pass(&workload.cycle)?;
            let programmed = self.device.counters().programmed_units() - before;
            if programmed + passes * round.trimmed_by_pass >= round.units {
                return Ok(passes);
            }
        }
        self.pass(&workload.cycle)?;
        Ok(round.passes.max(1))
    }

    /// Plays the cycle at the addresses of a pass.
    fn pass(&mut self, cycle: &[Step]) -> Result<(), Error> {
        let Some(mut variation) = self.variation.take() else {
            return self.play(cycle);
        };
        for step in cycle {
            match step.kind {
                Kind::Write => {
                    self.go_on()?;
                    variation.moved(step, |first, count| {
                        self.device.write_units(Write::new(first, count, step.tag))
                    })?;
                }
                Kind::Trim | Kind::Flush => self.play(std::slice::from_ref(step))?,
            }
        }
        variation.shuffle();
        self.variation = Some(variation);
        Ok(())
    }

    /// Writes empty units that the workload will not write, until the device is filled.
    fn fill(&mut self, holds: &mut Holds, workload: &Workload, fill: f64) -> Result<u64, Error> {
        // Data that other passes rewrite.
        let mut filled = 0;
        if let Some(variation) = self.variation.take() {
            for &unit in variation.units() {
                if !holds.is_set(unit) {
                    self.go_on()?;
                    holds.set(unit, 1, true);
                    self.device.write_units(Write::new(unit, 1, UNATTRIBUTED))?;
                    filled += 1;
                }
            }
            self.variation = Some(variation);
        }
        let mut later = holds.clone();
        later.play(&workload.cycle);
        let wanted = held_units(self.device.geometry(), fill);
        let mut left = wanted.saturating_sub(later.count());
        // Units that the cycle trims are not cold either.
        for step in workload.cycle.iter().filter(|s| s.kind == Kind::Trim) {
            later.set(step.first, step.count, true);
        }
        while let Some((first, count)) = later.next_gap(left.min(FILL_UNITS)) {
            self.go_on()?;
            later.set(first, count, true);
            holds.set(first, count, true);
            let write = Write::new(first, count, UNATTRIBUTED);
            self.device.write_units(write)?;
            left -= u64::from(count);
            filled += u64::from(count);
        }
        Ok(filled)
    }

    fn go_on(&self) -> Result<(), Error> {
        match self.is_stopped.load(Ordering::Relaxed) {
            true => Err(Error::Stopped),
            false => Ok(()),
        }
    }

    fn reading(&self, passes: u64) -> Reading {
        Reading {
            passes,
            counters: self.device.counters(),
            charges: self.device.charges().totals(),
        }
    }
}

fn differences(before: &[Charges], after: &[Charges]) -> Vec<(u16, Charges)> {
    let none = Charges::default();
    let of = |tag: usize| *after.get(tag).unwrap_or(&none) - *before.get(tag).unwrap_or(&none);
    (0..after.len())
        .map(|tag| (tag as u16, of(tag)))
        .filter(|(_, charges)| *charges != none)
        .collect()
}
