//! Table of paths, each stored once.

use crate::hash::HashMap;
use std::sync::Arc;

/// Number of a path in [`Paths`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(u32);

impl PathId {
    pub(super) fn from_index(index: u32) -> PathId {
        PathId(index)
    }

    /// Returns the index of the path in [`Paths::texts`].
    pub fn index(self) -> u32 {
        self.0
    }
}

/// All paths that rows refer to. Names on disk are bytes; here they are text, in which bytes that
/// are not UTF-8 are escaped.
#[derive(Debug, Default)]
pub struct Paths {
    ids: HashMap<Arc<str>, PathId>,
    texts: Vec<Arc<str>>,
}

impl Paths {
    /// Returns the number of the path, which is added if it is new.
    pub fn intern(&mut self, path: &str) -> PathId {
        if let Some(&id) = self.ids.get(path) {
            return id;
        }
        let id = PathId(self.texts.len() as u32);
        let text: Arc<str> = path.into();
        self.texts.push(Arc::clone(&text));
        self.ids.insert(text, id);
        id
    }

    /// Returns the text of the path.
    pub fn text(&self, id: PathId) -> &str {
        self.texts.get(id.0 as usize).map_or("", |text| text)
    }

    /// Iterates over all paths, in the order of their numbers.
    pub fn texts(&self) -> impl ExactSizeIterator<Item = &str> {
        self.texts.iter().map(|text| &**text)
    }
}
