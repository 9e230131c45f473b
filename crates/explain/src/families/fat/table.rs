//! The allocation table as far as it was written: the chains of clusters.

use std::collections::{BTreeSet, HashMap};

/// Entries of the table, and the chains that nothing names yet.
#[derive(Debug, Default)]
pub struct Table {
    /// Entry of each cluster, unless the entry is 0.
    next: HashMap<u64, u64>,
    /// The cluster whose entry names this one; the last one written if there are several.
    previous: HashMap<u64, u64>,
    /// Clusters in use whose entry has changed since the last [`take_heads`](Self::take_heads).
    changed: BTreeSet<u64>,
}

impl Table {
    /// Returns the entry of a cluster.
    pub fn next(&self, cluster: u64) -> u64 {
        self.next.get(&cluster).copied().unwrap_or(0)
    }

    /// Sets the entry of a cluster, and returns whether it has changed.
    pub fn set(&mut self, cluster: u64, next: u64) -> bool {
        let before = match next {
            0 => self.next.remove(&cluster),
            _ => self.next.insert(cluster, next),
        };
        let before = before.unwrap_or(0);
        if next == before {
            return false;
        }
        if self.previous.get(&before) == Some(&cluster) {
            self.previous.remove(&before);
        }
        if next == 0 {
            self.changed.remove(&cluster);
        } else {
            self.previous.insert(next, cluster);
            self.changed.insert(cluster);
        }
        true
    }

    /// Frees all clusters that `is_cleared`.
    pub fn clear(&mut self, is_cleared: impl Fn(u64) -> bool) {
        self.next.retain(|&cluster, _| !is_cleared(cluster));
        self.previous.retain(|_, &mut cluster| !is_cleared(cluster));
        self.changed.retain(|&cluster| !is_cleared(cluster));
    }

    /// Returns whether the cluster was allocated since the last [`take_heads`](Self::take_heads).
    pub fn is_new(&self, cluster: u64) -> bool {
        self.changed.contains(&cluster)
    }

    /// Returns the changed clusters that begin a chain.
    pub fn take_heads(&mut self) -> Vec<u64> {
        let changed = std::mem::take(&mut self.changed).into_iter();
        let is_head = |cluster: &u64| !self.previous.contains_key(cluster);
        changed.filter(is_head).collect()
    }

    /// Iterates over the clusters of the chain that begins at this head. In untrusted content,
    /// chains may share clusters; each cluster is then part of one of them only.
    pub fn chain(&self, head: u64) -> impl Iterator<Item = u64> {
        std::iter::successors(Some(head), |&cluster| {
            let next = self.next(cluster);
            (self.previous.get(&next) == Some(&cluster)).then_some(next)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: u64 = 0x0fff_ffff;

    #[test]
    fn a_head_is_what_no_entry_names() {
        let mut table = Table::default();
        for (cluster, next) in [(7, END), (5, 6), (6, 9), (9, END)] {
            assert!(table.set(cluster, next));
        }
        assert!(!table.set(9, END));
        assert_eq!(table.take_heads(), [5, 7]);
        let chain: Vec<_> = table.chain(5).take_while(|&at| at != END).collect();
        assert_eq!(chain, [5, 6, 9]);
        // The rest of the chain is cut off, and a free cluster begins nothing.
        table.set(5, END);
        table.set(9, 10);
        table.set(7, 0);
        assert_eq!(table.take_heads(), [5]);
    }

    #[test]
    fn chains_that_share_clusters_end() {
        let mut table = Table::default();
        for (cluster, next) in [(2, 4), (3, 4), (4, 5), (5, 4)] {
            table.set(cluster, next);
        }
        assert_eq!(table.take_heads(), [2, 3]);
        for head in [2, 3, 4, 5] {
            assert!(table.chain(head).take(9).count() < 9 || head > 3);
        }
    }
}
