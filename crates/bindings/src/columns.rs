//! Columns of numbers, as bytes.

/// The columns of a batch: name and little-endian values of each.
pub type Columns<const N: usize> = [(&'static str, Vec<u8>); N];

/// Returns the column of a value that each row has.
pub fn column<T, const N: usize>(
    name: &'static str,
    rows: &[T],
    bytes_of: impl Fn(&T) -> [u8; N],
) -> (&'static str, Vec<u8>) {
    let mut bytes = Vec::with_capacity(rows.len() * N);
    for row in rows {
        bytes.extend_from_slice(&bytes_of(row));
    }
    (name, bytes)
}

/// Adds rows to a batch.
pub fn append<const N: usize>(batch: &mut Option<Columns<N>>, rows: Columns<N>) {
    let Some(batch) = batch else {
        *batch = Some(rows);
        return;
    };
    for ((_, whole), (_, part)) in batch.iter_mut().zip(rows) {
        whole.extend_from_slice(&part);
    }
}
