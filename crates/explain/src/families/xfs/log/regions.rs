//! The regions of one log item.

/// Regions, one behind the other in one buffer: a log has millions of them.
#[derive(Debug, Default)]
pub struct Regions {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Regions {
    /// A region begins.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.ends.push(self.bytes.len());
    }

    /// The last region goes on.
    pub fn extend(&mut self, bytes: &[u8]) {
        match self.ends.last_mut() {
            Some(end) => {
                self.bytes.extend_from_slice(bytes);
                *end = self.bytes.len();
            }
            None => self.push(bytes),
        }
    }

    /// No region, and the buffer is kept.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Bytes of all.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// One of them.
    pub fn get(&self, number: usize) -> Option<&[u8]> {
        let begin = match number {
            0 => 0,
            _ => *self.ends.get(number - 1)?,
        };
        self.bytes.get(begin..*self.ends.get(number)?)
    }

    /// All from this one on.
    pub fn from(&self, number: usize) -> impl Iterator<Item = &[u8]> {
        (number..self.ends.len()).filter_map(|n| self.get(n))
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
        assert_eq!((regions.count(), regions.bytes()), (3, 5));
        assert_eq!(regions.get(0), Some(&b"ab"[..]));
        assert_eq!(regions.from(1).collect::<Vec<_>>(), [&b""[..], b"cde"]);
        assert_eq!(regions.get(3), None);
        regions.clear();
        assert_eq!(regions.get(0), None);
    }
}
