//! Paths, each stored once.

use std::collections::HashMap;

/// A path in [`Paths`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(u32);

impl PathId {
    /// Its place among [`Paths::texts`].
    pub fn index(self) -> u32 {
        self.0
    }
}

/// All paths that rows name. Names are bytes on disk; here, text in which bytes that are not UTF-8 are replaced.
#[derive(Debug, Default)]
pub struct Paths {
    ids: HashMap<String, PathId>,
    texts: Vec<String>,
}

impl Paths {
    /// The path's number.
    pub fn intern(&mut self, path: &str) -> PathId {
        if let Some(&id) = self.ids.get(path) {
            return id;
        }
        let id = PathId(self.texts.len() as u32);
        self.texts.push(path.to_owned());
        self.ids.insert(path.to_owned(), id);
        id
    }

    /// The path's text.
    pub fn text(&self, id: PathId) -> &str {
        self.texts.get(id.0 as usize).map_or("", String::as_str)
    }

    /// All, in the order of their numbers.
    pub fn texts(&self) -> &[String] {
        &self.texts
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }
}
