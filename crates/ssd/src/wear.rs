//! Distribution of erases over blocks.

/// Statistics of erase counts by block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wear {
    /// Fewest erases of any block.
    pub min_erases: u32,
    /// Most erases of any block.
    pub max_erases: u32,
    /// Index of the first block with the most erases.
    pub worst_block: u32,
    /// Mean erases per block.
    pub mean_erases: f64,
    /// Population variance of the erases per block.
    pub variance: f64,
}

impl Wear {
    /// Computes the statistics of `erases`, one count for each block. All zero if `erases` is
    /// empty.
    #[must_use]
    pub fn of(erases: &[u32]) -> Wear {
        let blocks = erases.len().max(1) as f64;
        let counts = erases.iter().map(|&count| f64::from(count));
        let mean = counts.clone().sum::<f64>() / blocks;
        let squares = counts.map(|count| (count - mean).powi(2)).sum::<f64>();
        let max_erases = erases.iter().copied().max().unwrap_or(0);
        let worst_block = erases.iter().position(|&count| count == max_erases);
        Wear {
            min_erases: erases.iter().copied().min().unwrap_or(0),
            max_erases,
            worst_block: worst_block.unwrap_or(0) as u32,
            mean_erases: mean,
            variance: squares / blocks,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Wear;

    #[test]
    fn statistics_are_those_of_the_counts() {
        let wear = Wear::of(&[1, 3, 3, 1]);
        assert_eq!(
            (wear.min_erases, wear.max_erases, wear.worst_block),
            (1, 3, 1)
        );
        assert_eq!((wear.mean_erases, wear.variance), (2.0, 1.0));
        assert_eq!(Wear::of(&[]).mean_erases, 0.0);
    }
}
