//! Escaping of file names: names are bytes, but text for people, JSON and Parquet is UTF-8.

use std::{borrow::Cow, fmt::Write};

/// Returns a name as text. The conversion is reversible, so different names stay different. Each
/// byte that is not valid UTF-8 or belongs to a control character becomes `\xNN`; a backslash
/// becomes `\\`.
pub fn escaped(name: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(name)
        && !text.chars().any(|c| c == '\\' || c.is_control())
    {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(name.len() * 2);
    for chunk in name.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\\' => text.push_str("\\\\"),
                c if c.is_control() => {
                    hexadecimal(&mut text, c.encode_utf8(&mut [0; 4]).as_bytes())
                }
                c => text.push(c),
            }
        }
        hexadecimal(&mut text, chunk.invalid());
    }
    Cow::Owned(text)
}

fn hexadecimal(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "\\x{byte:02x}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes escaped text as a reader would.
    fn unescaped(text: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut rest = text.as_bytes();
        while let [first, tail @ ..] = rest {
            bytes.push(*first);
            rest = tail;
            if *first == b'\\' {
                bytes.pop();
                if tail[0] == b'\\' {
                    bytes.push(b'\\');
                    rest = &tail[1..];
                } else {
                    bytes.push(
                        u8::from_str_radix(std::str::from_utf8(&tail[1..3]).unwrap(), 16).unwrap(),
                    );
                    rest = &tail[3..];
                }
            }
        }
        bytes
    }

    #[test]
    fn what_is_printable_stays() {
        for name in ["a b", "éxt4☃", "-rf", "\"q\"", ""] {
            assert!(matches!(escaped(name.as_bytes()), Cow::Borrowed(text) if text == name));
        }
    }

    #[test]
    fn other_bytes_are_written_as_numbers() {
        assert_eq!(escaped(b"\xff\xfe\x80"), r"\xff\xfe\x80");
        assert_eq!(escaped(b"c\nd\x1b\x7f"), r"c\x0ad\x1b\x7f");
        assert_eq!(escaped("a\u{85}".as_bytes()), r"a\xc2\x85");
        assert_eq!(escaped(br"a\xff"), r"a\\xff");
        assert_eq!(escaped(b"\xe2\x98"), r"\xe2\x98");
    }

    #[test]
    fn it_can_be_undone_so_different_names_differ() {
        let mut seen = std::collections::BTreeMap::new();
        for first in 0..=255 {
            for second in [0, b'\\', b'x', b'f', 0x80, 0xc3, 0xff] {
                let name = vec![first, second, b'f', b'f'];
                let text = escaped(&name).into_owned();
                assert_eq!(unescaped(&text), name);
                assert_eq!(seen.insert(text, name), None);
            }
        }
    }
}
