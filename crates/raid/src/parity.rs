//! RAID 4, 5 and 6: members of a stripe that hold parity (`drivers/md/raid5.c`,
//! `raid5_compute_sector`).

use crate::{Geometry, Level, Place, Role};

/// Stripes of one chunk on each member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parity {
    layout: Layout,
    members: u64,
    /// Number of members that hold parity in each stripe.
    parities: u64,
    chunk_bytes: u64,
    stripes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Layout {
    turn: Turn,
    /// True if data begins after P instead of on the first member.
    is_symmetric: bool,
    q: Q,
}

/// Rotation of P over the members of a stripe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    First,
    Last,
    /// The last member in stripe 0, then the one before it.
    Left,
    Right,
    /// Like `Left`, but one stripe later (DDF).
    LeftFromSecond,
}

/// Position of Q.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Q {
    None,
    BehindP,
    /// DDF's "N continue".
    BeforeP,
    /// The last member; the others form a RAID 5.
    Last,
}

impl Layout {
    fn of(level: Level, layout: u32) -> Option<Layout> {
        let q = match level {
            Level::Raid6 => Q::BehindP,
            _ => Q::None,
        };
        let wandering = |layout: u32| match layout % 2 {
            0 => Turn::Left,
            _ => Turn::Right,
        };
        let (turn, is_symmetric, q) = match (level, layout) {
            (Level::Raid4, _) => (Turn::Last, false, q),
            (_, 0..=3) => (wandering(layout), layout >= 2, q),
            (_, 4) => (Turn::First, false, q),
            (_, 5) => (Turn::Last, false, q),
            (Level::Raid6, 8) => (Turn::Right, false, q),
            (Level::Raid6, 9) => (Turn::LeftFromSecond, false, q),
            (Level::Raid6, 10) => (Turn::Left, true, Q::BeforeP),
            (Level::Raid6, 16..=19) => (wandering(layout), layout >= 18, Q::Last),
            (Level::Raid6, 20) => (Turn::First, false, Q::Last),
            _ => return None,
        };
        Some(Layout {
            turn,
            is_symmetric,
            q,
        })
    }
}

/// The members of one stripe.
#[derive(Debug, Clone, Copy)]
struct Stripe {
    members: u64,
    p: u64,
    q: Option<u64>,
    /// Member on which the data begins.
    begin: u64,
}

impl Stripe {
    /// Returns the members that hold data, in the array's order.
    fn data(self) -> impl Iterator<Item = u64> {
        let all = (0..self.members).map(move |at| (self.begin + at) % self.members);
        all.filter(move |&at| at != self.p && Some(at) != self.q)
    }
}

impl Parity {
    pub(crate) fn new(geometry: &Geometry) -> Option<Parity> {
        let members = geometry.member_bytes.len() as u64;
        let parities = if geometry.level == Level::Raid6 { 2 } else { 1 };
        let layout = Layout::of(geometry.level, geometry.layout)?;
        let member_bytes = geometry.member_bytes.iter().copied().min()?;
        (members > parities).then_some(Parity {
            layout,
            members,
            parities,
            chunk_bytes: geometry.chunk_bytes,
            stripes: member_bytes / geometry.chunk_bytes,
        })
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        self.stripes * self.stripe_bytes()
    }

    pub(crate) fn role(&self, member: usize, offset: u64) -> (Role, u64) {
        let (number, in_chunk) = (offset / self.chunk_bytes, offset % self.chunk_bytes);
        let length = self.chunk_bytes - in_chunk;
        if number >= self.stripes {
            return (Role::Unused, length);
        }
        let stripe = self.stripe(number);
        let member = member as u64;
        let role = match stripe.data().position(|at| at == member) {
            Some(chunk) => Role::Data {
                array_offset: number * self.stripe_bytes()
                    + chunk as u64 * self.chunk_bytes
                    + in_chunk,
                copy: 0,
            },
            None if member == stripe.p => Role::Parity,
            None if Some(member) == stripe.q => Role::Syndrome,
            None => Role::Unused,
        };
        (role, length)
    }

    pub(crate) fn places(&self, offset: u64) -> (Vec<Place>, u64) {
        let (number, within) = (offset / self.stripe_bytes(), offset % self.stripe_bytes());
        let (chunk, in_chunk) = (within / self.chunk_bytes, within % self.chunk_bytes);
        let member = self.stripe(number).data().nth(chunk as usize);
        let places = member.map(|member| Place {
            member: member as usize,
            offset: number * self.chunk_bytes + in_chunk,
        });
        (places.into_iter().collect(), self.chunk_bytes - in_chunk)
    }

    pub(crate) fn parity_places(&self, offset: u64) -> Vec<Place> {
        let number = offset / self.stripe_bytes();
        let stripe = self.stripe(number);
        let holders = [Some(stripe.p), stripe.q];
        let places = holders.into_iter().flatten().map(|member| Place {
            member: member as usize,
            offset: number * self.chunk_bytes + offset % self.chunk_bytes,
        });
        places.collect()
    }

    /// Returns the members with data and those with parity as bit masks, for one offset on all
    /// members.
    pub(crate) fn members_of_row(&self, offset: u64) -> (u64, u64) {
        let stripe = self.stripe(offset / self.chunk_bytes);
        let data = stripe.data().fold(0, |bits, member| bits | 1 << member);
        let parity = 1 << stripe.p | stripe.q.map_or(0, |q| 1 << q);
        (data, parity)
    }

    fn stripe_bytes(&self) -> u64 {
        self.chunk_bytes * (self.members - self.parities)
    }

    fn stripe(&self, number: u64) -> Stripe {
        let (layout, members) = (self.layout, self.members);
        // Number of members among which P rotates.
        let round = members - u64::from(layout.q == Q::Last);
        let p = match layout.turn {
            Turn::First => 0,
            Turn::Last => members - self.parities,
            Turn::Left => round - 1 - number % round,
            Turn::Right => number % round,
            Turn::LeftFromSecond => round - 1 - (number + 1) % round,
        };
        let q = match layout.q {
            Q::None => None,
            Q::BehindP => Some((p + 1) % members),
            Q::BeforeP => Some((p + members - 1) % members),
            Q::Last => Some(members - 1),
        };
        Stripe {
            members,
            p,
            q,
            begin: if layout.is_symmetric {
                (p + 1) % members
            } else {
                0
            },
        }
    }
}
