//! Numbers in text, parsed without allocation or UTF-8 checks.

/// Nanoseconds in a second.
pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// Parses an unsigned decimal integer that consists of digits only.
#[inline]
pub(crate) fn integer(text: &[u8]) -> Option<u64> {
    // 19 digits cannot overflow 64 bits.
    if text.is_empty() || text.len() > 19 {
        return long_integer(text);
    }
    let mut value = 0;
    let (eights, rest) = text.as_chunks();
    for eight in eights {
        value = value * 100_000_000 + eight_digits(*eight)?;
    }
    for &byte in rest {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    Some(value)
}

/// Parses eight digits at once. Each step joins neighbours: digits to pairs, pairs to fours, fours
/// to eight.
#[inline]
fn eight_digits(text: [u8; 8]) -> Option<u64> {
    const ZEROES: u64 = 0x3030_3030_3030_3030;
    const UPPER: u64 = 0xf0f0_f0f0_f0f0_f0f0;
    let text = u64::from_le_bytes(text);
    // A byte is a digit if it lies in 0x30..0x40 and stays there when 6 are added; no sum of such
    // bytes carries.
    let above = text.wrapping_add(0x0606_0606_0606_0606);
    if text & UPPER != ZEROES || above & UPPER != ZEROES {
        return None;
    }
    let digits = text - ZEROES;
    let pairs = (digits * 10 + (digits >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    Some((fours * 10_000 + (fours >> 32)) & 0xffff_ffff)
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

/// Parses decimal seconds with an optional fraction as nanoseconds. Digits below a nanosecond are
/// truncated.
pub(crate) fn seconds_ns(text: &[u8]) -> Option<u64> {
    fixed::<9>(text)
}

/// Parses decimal milliseconds as nanoseconds, like `seconds_ns`.
pub(crate) fn milliseconds_ns(text: &[u8]) -> Option<u64> {
    fixed::<6>(text)
}

/// Parses a decimal number with an optional fraction, in units of its `DIGITS`th decimal. Digits
/// below are truncated.
fn fixed<const DIGITS: usize>(text: &[u8]) -> Option<u64> {
    let point = memchr::memchr(b'.', text).unwrap_or(text.len());
    let whole = integer(&text[..point])?.checked_mul(10u64.pow(DIGITS as u32))?;
    let Some(fraction) = text.get(point + 1..) else {
        return Some(whole);
    };
    if fraction.is_empty() {
        return None;
    }
    let (kept, cut) = fraction.split_at(fraction.len().min(DIGITS));
    if !cut.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let unit = 10u64.pow((DIGITS - kept.len()) as u32);
    whole.checked_add(integer(kept)? * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_digits_alone_and_fit_64_bits() {
        assert_eq!(integer(b"0"), Some(0));
        assert_eq!(integer(b"0000000000000000000000000007"), Some(7));
        assert_eq!(integer(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(
            integer(b"9876543210123456789"),
            Some(9_876_543_210_123_456_789)
        );
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
    fn every_byte_but_digits_is_refused_at_every_place() {
        for length in 1..=19 {
            for place in 0..length {
                for byte in 0..=u8::MAX {
                    let mut text = vec![b'7'; length];
                    text[place] = byte;
                    let wanted = String::from_utf8(text.clone());
                    let wanted = wanted.ok().filter(|_| byte.is_ascii_digit());
                    let wanted = wanted.and_then(|text| text.parse().ok());
                    assert_eq!(integer(&text), wanted, "{text:?}");
                }
            }
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
