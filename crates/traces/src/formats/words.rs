//! Fields separated by blanks.

use crate::error::Problem;

/// Splits a line into words; at most `N` are kept. Returns the words and their number.
fn split<const N: usize>(line: &[u8]) -> ([&[u8]; N], usize) {
    let mut words: [&[u8]; N] = [&[]; N];
    let mut count = 0;
    for word in line.split(|byte| matches!(byte, b' ' | b'\t')) {
        if word.is_empty() {
            continue;
        }
        if let Some(place) = words.get_mut(count) {
            *place = word;
        }
        count += 1;
    }
    (words, count)
}

/// Splits a line into exactly `N` words.
pub(super) fn words<const N: usize>(line: &[u8]) -> Result<[&[u8]; N], Problem> {
    let (words, count) = split(line);
    if count != N {
        return Err(format!("{count} fields separated by blanks, but the format has {N}").into());
    }
    Ok(words)
}
