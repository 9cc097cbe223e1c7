//! Progress: bars on a terminal, otherwise an occasional line.

mod datasets;
mod episodes;
mod file;
mod pace;
mod runs;

pub(crate) use datasets::DatasetProgress;
pub(crate) use episodes::{EpisodePage, without_hash};
pub(crate) use file::FileProgress;
pub(crate) use runs::RunProgress;
