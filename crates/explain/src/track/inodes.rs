//! Map from inodes to values. Lookups follow the order of inode chunks, so the values of one chunk
//! are stored side by side.

use crate::hash::HashMap;

/// Base-2 logarithm of the number of inodes per chunk (`XFS_INODES_PER_CHUNK`).
const CHUNK_LOG: u32 = 6;

/// Number of values of a chunk that has few. A chunk with more takes the space of all at once.
const FEW: usize = 8;

/// Known inodes of one chunk, in order.
#[derive(Debug)]
struct Chunk<T> {
    known: u64,
    values: Vec<T>,
}

/// Map from inodes to values.
#[derive(Debug)]
pub struct Inodes<T>(HashMap<u64, Chunk<T>>);

impl<T> Default for Inodes<T> {
    fn default() -> Inodes<T> {
        Inodes(HashMap::default())
    }
}

/// Returns the inode's chunk, its bit in `known`, and the mask of the bits below it.
fn place(inode: u64) -> (u64, u64, u64) {
    let bit = 1 << (inode & ((1 << CHUNK_LOG) - 1));
    (inode >> CHUNK_LOG, bit, bit - 1)
}

impl<T> Inodes<T> {
    /// Returns the value of an inode, if it has one.
    pub fn get(&self, inode: u64) -> Option<&T> {
        let (chunk, bit, below) = place(inode);
        let chunk = self.0.get(&chunk).filter(|c| c.known & bit != 0)?;
        chunk
            .values
            .get((chunk.known & below).count_ones() as usize)
    }

    /// Returns the value of an inode for modification, if it has one.
    pub fn get_mut(&mut self, inode: u64) -> Option<&mut T> {
        let (chunk, bit, below) = place(inode);
        let chunk = self.0.get_mut(&chunk).filter(|c| c.known & bit != 0)?;
        let number = (chunk.known & below).count_ones() as usize;
        chunk.values.get_mut(number)
    }

    /// Returns the value of an inode, inserting `new` if it has none.
    pub fn get_or_insert_with(&mut self, inode: u64, new: impl FnOnce() -> T) -> &mut T {
        let (chunk, bit, below) = place(inode);
        let chunk = self.0.entry(chunk).or_insert_with(|| Chunk {
            known: 0,
            values: Vec::new(),
        });
        let number = (chunk.known & below).count_ones() as usize;
        if chunk.known & bit == 0 {
            chunk.known |= bit;
            if chunk.values.len() == chunk.values.capacity() {
                let count = chunk.values.len();
                let most = if count < FEW { FEW } else { 1 << CHUNK_LOG };
                chunk.values.reserve_exact(most.saturating_sub(count));
            }
            chunk.values.insert(number, new());
        }
        &mut chunk.values[number]
    }

    /// Removes the value of an inode.
    pub fn remove(&mut self, inode: u64) {
        let (chunk, bit, below) = place(inode);
        if let Some(chunk) = self.0.get_mut(&chunk).filter(|c| c.known & bit != 0) {
            let number = (chunk.known & below).count_ones() as usize;
            chunk.known &= !bit;
            chunk.values.remove(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_a_map(steps in prop::collection::vec((0..200_u64, any::<bool>()), 0..300)) {
            let (mut ours, mut map) = (Inodes::default(), HashMap::default());
            for (value, (inode, insert)) in steps.into_iter().enumerate() {
                match insert {
                    true => {
                        let known = map.entry(inode).or_insert(value);
                        assert_eq!(ours.get_or_insert_with(inode, || value), known);
                    }
                    false => { ours.remove(inode); map.remove(&inode); }
                }
                for inode in 0..200 {
                    assert_eq!(ours.get(inode), map.get(&inode));
                    assert_eq!(ours.get_mut(inode), map.get_mut(&inode));
                }
            }
        }
    }
}
