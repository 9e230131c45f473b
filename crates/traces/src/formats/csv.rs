//! Fields between commas, and the header that a file may begin with.

use crate::{error::Problem, number::integer};

/// Exactly `N` fields. None of the formats quotes.
pub(super) fn fields<const N: usize>(line: &[u8]) -> Result<[&[u8]; N], Problem> {
    let mut fields: [&[u8]; N] = [&[]; N];
    let mut begin = 0;
    let mut count = 0;
    for comma in memchr::memchr_iter(b',', line).chain(std::iter::once(line.len())) {
        if let Some(field) = fields.get_mut(count) {
            *field = &line[begin..comma];
        }
        begin = comma + 1;
        count += 1;
    }
    if count != N {
        return Err(format!("{count} fields separated by commas, but the format has {N}").into());
    }
    Ok(fields)
}

/// Whether this is the first line and names the columns.
pub(super) fn is_header(line: &[u8], number: u64, header: &str) -> bool {
    number == 1 && line.eq_ignore_ascii_case(header.as_bytes())
}

/// The integer of a named field.
pub(super) fn integer_of(name: &'static str, text: &[u8]) -> Result<u64, Problem> {
    integer(text).ok_or_else(|| not_an_integer(name, text))
}

#[cold]
fn not_an_integer(name: &str, text: &[u8]) -> Problem {
    format!("{name} is {}, not an integer of 64 bits", shown(text)).into()
}

/// A field for a message: short, and without control characters.
#[cold]
pub(super) fn shown(text: &[u8]) -> String {
    const MOST: usize = 32;
    let cut = if text.len() > MOST { "…" } else { "" };
    let text = &text[..text.len().min(MOST)];
    format!("'{}{cut}'", text.escape_ascii())
}
