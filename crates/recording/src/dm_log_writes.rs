//! dm-log-writes.
