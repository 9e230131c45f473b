//! Places of blocks in their files.

use super::{
    blocks::{Kind, Mapper, Use},
    map::Claim,
    state::State,
};
use crate::Shift;

impl State {
    /// Returns the number in its file of the first block of a claim, if known.
    pub(super) fn file_block_of(&self, mapper: Mapper, claim: &Claim) -> Option<u64> {
        Some(claim.first.wrapping_add(self.first_below(mapper)?))
    }

    /// Returns the number that the claims of this mapper are relative to. Only those of blocks of
    /// pointers are relative.
    fn first_below(&self, mapper: Mapper) -> Option<u64> {
        match self.space.get(mapper.node).map(|used| used.kind) {
            Some(Kind::Pointers(..)) if mapper.node != 0 => self.space.file_block(mapper.node),
            _ => Some(0),
        }
    }

    /// Returns the mapper of a block with this use, and its claim to the block.
    pub(super) fn claim_of(&self, block: u64, used: Use) -> (Mapper, Claim) {
        let number = self.space.file_block(block).unwrap_or_default();
        let below = self.first_below(used.mapper()).unwrap_or_default();
        used.claim_of(block, number.wrapping_sub(below))
    }

    /// Renumbers the blocks of data that moved within its file.
    pub(super) fn renumber(&mut self, moved: &[(Mapper, Claim)]) {
        for (mapper, claim) in moved {
            let file_block = self.file_block_of(*mapper, claim);
            let used = mapper.uses(claim.kind);
            self.space
                .renumber(claim.start, claim.length, used, file_block);
        }
    }

    /// Returns the distance from the bytes of a block on the disk to those of its file, if known.
    pub(super) fn shift_of(&self, block: u64, file_block: Option<u64>) -> Option<Shift> {
        let file_offset = file_block?.checked_mul(self.block_bytes())?;
        Some(Shift::between(self.offset_of(block), file_offset))
    }
}
