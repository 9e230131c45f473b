//! State shared by the families: block owners, names, inodes, and rows that wait for an owner.

pub(crate) mod files;
pub(crate) mod fingerprints;
pub(crate) mod follower;
pub(crate) mod inodes;
pub(crate) mod names;
pub(crate) mod newer;
pub(crate) mod reused;
pub(crate) mod runs;
pub(crate) mod waiting;
