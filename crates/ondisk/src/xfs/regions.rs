//! The regions of one log item.

/// Regions, stored one after another in a single buffer because a log has millions of them.
#[derive(Debug, Default)]
pub struct Regions {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Regions {
    /// Adds a region.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.ends.push(self.bytes.len());
    }

    /// Extends the last region.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.ends.pop();
        self.push(bytes);
    }

    /// Removes all regions but keeps the buffer.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Bytes of all regions, one after another.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Number of regions.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// Returns region `number`.
    pub fn get(&self, number: usize) -> Option<&[u8]> {
        let begin = match number {
            0 => 0,
            _ => *self.ends.get(number - 1)?,
        };
        self.bytes.get(begin..*self.ends.get(number)?)
    }

    /// Returns all regions from `number` on.
    pub fn from(&self, number: usize) -> impl Iterator<Item = &[u8]> {
        (number..self.ends.len()).filter_map(|n| self.get(n))
    }

    /// Returns all regions as mutable slices.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut [u8]> {
        let (mut rest, mut begin) = (self.bytes.as_mut_slice(), 0);
        self.ends.iter().map_while(move |&end| {
            let (region, behind) = std::mem::take(&mut rest).split_at_mut_checked(end - begin)?;
            (rest, begin) = (behind, end);
            Some(region)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_keep_their_bounds() {
        let mut regions = Regions::default();
        regions.extend(b"ab");
        regions.push(b"");
        regions.push(b"cd");
        regions.extend(b"e");
        assert_eq!((regions.count(), regions.bytes()), (3, &b"abcde"[..]));
        assert_eq!(regions.get(0), Some(&b"ab"[..]));
        assert_eq!(regions.from(1).collect::<Vec<_>>(), [&b""[..], b"cde"]);
        assert_eq!(regions.get(3), None);
        regions.iter_mut().for_each(|region| region.reverse());
        assert_eq!(regions.bytes(), b"baedc");
        regions.clear();
        assert_eq!(regions.get(0), None);
    }
}
