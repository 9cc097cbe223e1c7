//! Contexts of builds: archives whose entries and Dockerfile are checked.
//!
//! An archive can be read in several ways: it may have two Dockerfiles, or entries that only some programs see. The engine
//! therefore never gets the client's archive. The proxy writes an archive of its own with the entries that it has read and
//! checked, and appends the Dockerfile that it has checked under a name that the client can't know.

mod archive;
mod dockerfile;
mod label;
mod spool;

pub(crate) use self::archive::program_archive;
pub(crate) use self::dockerfile::{Builder, check_dockerfile};
pub(crate) use self::label::with_label;
pub(crate) use self::spool::{ContextError, receive, stream};
