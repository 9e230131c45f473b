//! The mode of an inode, whose upper bits are the same in all file systems of Linux (`S_IFMT`).

/// Kind of an inode's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Directory: names.
    Directory,
    /// Symbolic link: its target.
    Symlink,
    /// File data, or no data.
    Other,
}

impl Kind {
    /// Returns the kind of an inode with this mode.
    pub fn of_mode(mode: u32) -> Kind {
        match mode & 0o170_000 {
            0o040_000 => Kind::Directory,
            0o120_000 => Kind::Symlink,
            _ => Kind::Other,
        }
    }
}
