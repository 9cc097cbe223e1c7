//! Uploaded terminal tasks: admission, storage, and datasets made of them.
//!
//! | object | holds |
//! | --- | --- |
//! | `tasks/HASH.zip` | the archive, as the first uploader of this content sent it |
//! | `tasks/HASH.json.zst` | facts about the content, so that orders don't open archives |
//!
//! The record of a task is in the table (`bench_state`). [`TaskStore::add`] writes objects before the record, and checks
//! them again afterwards, because a removal may have deleted them in between.
//!
//! | module | contents |
//! | --- | --- |
//! | `archive` | [`UploadedArchive`], a file on disk until it is stored |
//! | `check` | [`CheckedTask`]: admission of an archive |
//! | `limits` | [`TaskLimits`] |
//! | `store` | [`TaskStore`]: adds, lists and removes tasks |
//! | `dataset` | datasets made of tasks |
//! | `reference` | names by which orders refer to tasks |

mod archive;
mod check;
mod dataset;
mod error;
mod limits;
mod reference;
mod store;

pub use archive::{IncomingArchive, UploadedArchive};
pub use check::{CheckedTask, INSTRUCTION_BYTES_MAX, task_name};
pub use error::TaskError;
pub use limits::{ARCHIVE_BYTES_MAX, EXPANDED_BYTES_MAX, TaskLimits};
pub use reference::{TaskReference, find_task, item_id, item_id_of};
pub use store::{TaskStore, TaskUpload};
