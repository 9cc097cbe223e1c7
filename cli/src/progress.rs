//! Progress: bars on a terminal, a line now and then elsewhere.

mod datasets;
mod file;
mod runs;

pub(crate) use datasets::DatasetProgress;
pub(crate) use file::FileProgress;
pub(crate) use runs::RunProgress;
