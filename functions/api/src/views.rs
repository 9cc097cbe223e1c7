//! Views that several resources, or the command, share.

pub(crate) mod benchmark;
pub(crate) mod overview;
