//! An export as a file: a table, lines of JSON, a protocol in Markdown, or a signed archive, in the order of the plan.

pub(crate) mod build;
mod cells;
mod facts;
pub(crate) mod format;
mod item;
mod lines;
mod manifest;
mod markdown;
mod ordered;
mod protocol;
mod report;
mod results;
mod samples;
mod table;
mod wording;
