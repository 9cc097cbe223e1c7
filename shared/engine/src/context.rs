//! Contexts of builds: archives whose Dockerfile is checked and replaced by the checked copy.
//!
//! An archive can be read in several ways: it may have two Dockerfiles, links, or entries that only some programs see.
//! The proxy therefore doesn't rely on its own reading. It appends the text that it checked under a name that the
//! client can't know, and the engine builds from that name.

mod archive;
mod dockerfile;
mod spool;

pub(crate) use self::archive::program_archive;
pub(crate) use self::dockerfile::{Builder, check_dockerfile};
pub(crate) use self::spool::{ContextError, receive, stream};
