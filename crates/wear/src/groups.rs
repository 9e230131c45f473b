//! Groups of rows that are charged together.

use fscost_explain::{Row, RowIter, Table};
use fscost_recording::Result;
use std::collections::HashMap;

/// Tag shared by the smallest groups, if there are more groups than tags. The tag above it, the
/// last one, is `fscost_ssd::UNATTRIBUTED`.
pub const OTHERS: u16 = u16::MAX - 1;
/// Tag of discards.
pub const DISCARDS: u16 = u16::MAX - 2;
/// Maximum number of groups: tags below this are those of groups.
const MOST_GROUPS: usize = DISCARDS as usize;

/// Column by which rows are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Combination of causes.
    Cause,
    /// Structure and, for a journal's copy, the structure of the copied block.
    Structure,
    /// Path of the owner.
    Path,
    /// Interval.
    Step,
}

/// A group, identified by indices into [`Table`]'s names; -1 if there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Group {
    /// Index of the name of the cause, structure, path or interval.
    pub name: i32,
    /// Index of the structure of the block that a journal's copy copies.
    pub home: i32,
}

/// The groups and their tags.
pub(crate) struct Groups<'a> {
    table: &'a Table,
    by: By,
    tags: HashMap<Group, u16>,
    /// Groups, indexed by tag.
    pub(crate) groups: Vec<Group>,
}

impl<'a> Groups<'a> {
    /// Builds the groups of a table's rows. If there are more groups than tags, the largest ones
    /// get their own tags.
    pub(crate) fn new(table: &'a Table, by: By) -> Result<Groups<'a>> {
        let mut bytes: HashMap<Group, u64> = HashMap::new();
        let mut found = Groups {
            table,
            by,
            tags: HashMap::new(),
            groups: Vec::new(),
        };
        for row in found.rows() {
            let row = row?;
            *bytes.entry(found.group(&row)).or_default() += row.length;
        }
        let mut sorted: Vec<(Group, u64)> = bytes.into_iter().collect();
        sorted.sort_by_key(|&(group, bytes)| (std::cmp::Reverse(bytes), group));
        sorted.truncate(MOST_GROUPS);
        found.groups = sorted.into_iter().map(|(group, _)| group).collect();
        found.tags = found.groups.iter().copied().zip(0..).collect();
        Ok(found)
    }

    pub(crate) fn tag(&self, row: &Row) -> u16 {
        self.tags.get(&self.group(row)).copied().unwrap_or(OTHERS)
    }

    pub(crate) fn rows(&self) -> RowIter {
        self.table.explained.rows.iter()
    }

    fn group(&self, row: &Row) -> Group {
        let number = |value: usize| i32::try_from(value).unwrap_or(-1);
        let name = match self.by {
            By::Cause => number(self.table.cause_set(row.causes)),
            By::Structure => row.structure as i32,
            By::Path => row.path.map_or(-1, |path| number(path.index() as usize)),
            By::Step => number(self.table.timeline.interval(row.event)),
        };
        let home = row.home.filter(|_| self.by == By::Structure);
        Group {
            name,
            home: home.map_or(-1, |home| home as i32),
        }
    }
}
