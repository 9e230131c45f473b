//! Numbers in text, without allocation or UTF-8 checks.

/// Nanoseconds in a second.
pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// An unsigned decimal integer of digits alone.
pub(crate) fn integer(text: &[u8]) -> Option<u64> {
    // 19 digits cannot overflow 64 bits.
    if text.is_empty() || text.len() > 19 {
        return long_integer(text);
    }
    let mut value = 0;
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    Some(value)
}

fn long_integer(text: &[u8]) -> Option<u64> {
    let mut value: u64 = 0;
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    (!text.is_empty()).then_some(value)
}

/// Nanoseconds of decimal seconds with an optional fraction. Digits below a nanosecond are cut off.
pub(crate) fn seconds_ns(text: &[u8]) -> Option<u64> {
    let point = memchr::memchr(b'.', text).unwrap_or(text.len());
    let whole = integer(&text[..point])?.checked_mul(SECOND_NS)?;
    let Some(fraction) = text.get(point + 1..) else {
        return Some(whole);
    };
    let mut value = 0;
    let mut digits = 0;
    for &byte in fraction {
        if !byte.is_ascii_digit() {
            return None;
        }
        if digits < 9 {
            value = value * 10 + u64::from(byte - b'0');
            digits += 1;
        }
    }
    if digits == 0 {
        return None;
    }
    whole.checked_add(value * 10u64.pow(9 - digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_digits_alone_and_fit_64_bits() {
        assert_eq!(integer(b"0"), Some(0));
        assert_eq!(integer(b"0000000000000000000000000007"), Some(7));
        assert_eq!(integer(b"18446744073709551615"), Some(u64::MAX));
        let refused: [&[u8]; 8] = [
            b"",
            b"-1",
            b"+1",
            b" 1",
            b"1 ",
            b"0x10",
            b"18446744073709551616",
            b"99999999999999999999",
        ];
        for text in refused {
            assert_eq!(integer(text), None, "{text:?}");
        }
    }

    #[test]
    fn seconds_keep_nanoseconds_exactly() {
        assert_eq!(
            seconds_ns(b"1456135200.013118000"),
            Some(1_456_135_200_013_118_000)
        );
        assert_eq!(seconds_ns(b"0.5"), Some(500_000_000));
        assert_eq!(seconds_ns(b"3"), Some(3_000_000_000));
        assert_eq!(seconds_ns(b"0.0000000019"), Some(1));
        assert_eq!(seconds_ns(b"18446744073.709551615"), Some(u64::MAX));
        let refused: [&[u8]; 6] = [
            b"",
            b".5",
            b"1.",
            b"1.-5",
            b"1.2.3",
            b"18446744073.709551616",
        ];
        for text in refused {
            assert_eq!(seconds_ns(text), None, "{text:?}");
        }
    }
}
