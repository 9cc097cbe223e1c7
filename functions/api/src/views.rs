//! Views that several resources, or the command, share.

pub(crate) mod benchmark;
pub(crate) mod code_task;
pub(crate) mod overview;
