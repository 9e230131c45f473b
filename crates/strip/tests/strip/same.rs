//! Comparison of the explanations of two recordings.

use fscost_explain::{Explained, Row, explain};
use fscost_recording::Recording;
use std::collections::HashMap;

/// Panics where the explanations differ, row by row, but for names: each must have become one other
/// of the same length, and no two the same one.
pub fn assert_same_explanation(original: &Recording, stripped: &Recording) {
    let (before, after) = (explain(original).unwrap(), explain(stripped).unwrap());
    assert_eq!(before.families, after.families);
    let mut names = Renaming::default();
    for (number, (old, new)) in before.rows.iter().zip(&after.rows).enumerate() {
        let unnamed = |row: &Row| Row { path: None, ..*row };
        assert_eq!(
            unnamed(old),
            unnamed(new),
            "row {number}, {:?}",
            text(&before, old)
        );
        match (text(&before, old), text(&after, new)) {
            (Some(old), Some(new)) => names.add(old, new),
            (old, new) => assert_eq!(old, new, "row {number}"),
        }
    }
    assert_eq!(before.rows.len(), after.rows.len());
}

fn text<'a>(explained: &'a Explained, row: &Row) -> Option<&'a str> {
    row.path.map(|path| explained.paths.text(path))
}

#[derive(Default)]
struct Renaming {
    forth: HashMap<String, String>,
    back: HashMap<String, String>,
}

impl Renaming {
    fn add(&mut self, old: &str, new: &str) {
        assert_eq!(
            old.matches('/').count(),
            new.matches('/').count(),
            "{old} {new}"
        );
        for (old, new) in old.split('/').zip(new.split('/')) {
            let one = self
                .forth
                .entry(old.to_owned())
                .or_insert_with(|| new.to_owned());
            assert_eq!(one, new, "{old}");
            let one = self
                .back
                .entry(new.to_owned())
                .or_insert_with(|| old.to_owned());
            assert!(
                one == old || new.len() < 3,
                "{old} and {one} are both {new}"
            );
            // An escape is longer than the byte that it stands for.
            if !old.contains('\\') && !new.contains('\\') {
                assert_eq!(old.len(), new.len());
            }
        }
    }
}
