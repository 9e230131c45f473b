//! Comma-separated fields and their values.

use crate::{
    device_events::range,
    error::Problem,
    number::{integer, seconds_ns},
    request::{Kind, Request},
};

/// Splits a line into exactly `N` fields. None of the formats uses quotes.
#[inline]
pub(super) fn fields<const N: usize>(line: &[u8]) -> Result<[&[u8]; N], Problem> {
    let mut fields: [&[u8]; N] = [&[]; N];
    let mut begin = 0;
    let mut count = 0;
    let mut end_at = |comma: usize| {
        if let Some(field) = fields.get_mut(count) {
            *field = &line[begin..comma];
        }
        begin = comma + 1;
        count += 1;
    };
    // Fields are too short for memchr to pay off.
    let (words, rest) = line.as_chunks();
    for (number, word) in words.iter().enumerate() {
        let mut commas = commas_of(*word);
        while commas != 0 {
            end_at(8 * number + commas.trailing_zeros() as usize / 8);
            commas &= commas - 1;
        }
    }
    for (place, _) in rest.iter().enumerate().filter(|(_, byte)| **byte == b',') {
        end_at(8 * words.len() + place);
    }
    end_at(line.len());
    if count != N {
        return Err(format!("{count} fields separated by commas, but the format has {N}").into());
    }
    Ok(fields)
}

/// Returns a mask with the highest bit of each byte that is a comma.
#[inline]
fn commas_of(word: [u8; 8]) -> u64 {
    const LOWER: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let zeroes = u64::from_le_bytes(word) ^ u64::from_le_bytes([b','; 8]);
    !(((zeroes & LOWER) + LOWER) | zeroes | LOWER)
}

/// Parses an integer field as a time in units of `unit_ns` nanoseconds since the beginning of a
/// year.
#[inline]
pub(super) fn time_ns_of(
    name: &'static str,
    text: &[u8],
    unit_ns: u64,
    first_year: u32,
) -> Result<u64, Problem> {
    // 2^64 ns are 584.5 years.
    let time_ns = integer_of(name, text)?.checked_mul(unit_ns);
    time_ns.ok_or_else(|| format!("{name} is later than the year {}", first_year + 584).into())
}

/// Parses the range given by two fields in units of bytes.
#[inline]
pub(super) fn range_of(
    offset: (&'static str, &[u8]),
    length: (&'static str, &[u8]),
    unit_bytes: u64,
) -> Result<Request, Problem> {
    let length = integer_of(length.0, length.1)?.checked_mul(unit_bytes);
    let length = length.ok_or("the request ends beyond 2^64 bytes")?;
    range(integer_of(offset.0, offset.1)?, unit_bytes, length)
}

/// Parses the operation of a field with one word for a read and one for a write.
#[inline]
pub(super) fn kind_of(name: &str, text: &[u8], read: &str, write: &str) -> Result<Kind, Problem> {
    if text == write.as_bytes() {
        Ok(Kind::Write)
    } else if text == read.as_bytes() {
        Ok(Kind::Read)
    } else {
        Err(format!("{name} is {}, not {read} or {write}", shown(text)).into())
    }
}

/// Parses a field in seconds, and returns nanoseconds.
pub(super) fn seconds_of(name: &str, text: &[u8]) -> Result<u64, Problem> {
    seconds_ns(text).ok_or_else(|| format!("{name} is {}, not seconds", shown(text)).into())
}

/// Parses the integer of a named field.
pub(super) fn integer_of(name: &'static str, text: &[u8]) -> Result<u64, Problem> {
    integer(text).ok_or_else(|| not_an_integer(name, text))
}

#[cold]
fn not_an_integer(name: &str, text: &[u8]) -> Problem {
    format!("{name} is {}, not an integer of 64 bits", shown(text)).into()
}

/// Returns a field for a message: short, and without control characters.
#[cold]
pub(super) fn shown(text: &[u8]) -> String {
    const MOST: usize = 32;
    let cut = if text.len() > MOST { "…" } else { "" };
    let text = &text[..text.len().min(MOST)];
    format!("'{}{cut}'", text.escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn fields_are_those_of_split(
            line in prop::collection::vec(prop_oneof![Just(b','), any::<u8>()], 0..12),
            tail in "[0-9]{0,20}",
        ) {
            let line = &[&line[..], tail.as_bytes()].concat()[..];
            let wanted: Vec<&[u8]> = line.split(|&byte| byte == b',').collect();
            let found = fields::<4>(line);
            prop_assert_eq!(found.is_ok(), wanted.len() == 4);
            if let Ok(found) = found {
                prop_assert_eq!(&found[..], &wanted[..]);
            }
        }
    }
}
