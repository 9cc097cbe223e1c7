//! Uploaded terminal tasks and custom agents: admission, storage, and datasets made of tasks.
//!
//! | object | holds |
//! | --- | --- |
//! | `tasks/HASH.zip` | the archive, as the first uploader of this content sent it |
//! | `tasks/HASH.json.zst` | facts about the content, so that orders don't open archives |
//! | `agents/HASH.zip` | the archive of a custom agent |
//!
//! The record of a task is in the table (`bench_state`). [`TaskStore::add`] writes objects before the record, and checks
//! them again afterwards, because a removal may have deleted them in between.
//!
//! | module | contents |
//! | --- | --- |
//! | `agents` | [`AgentStore`]: adds, lists and removes custom agents |
//! | `archive` | [`UploadedArchive`], a file on disk until it is stored |
//! | `check` | [`CheckedTask`]: admission of an archive |
//! | `limits` | [`TaskLimits`] |
//! | `store` | [`TaskStore`]: adds, lists and removes tasks |
//! | `dataset` | datasets made of tasks |
//! | `reference` | names by which orders refer to tasks |

mod agents;
mod archive;
mod check;
mod dataset;
mod error;
mod limits;
mod reference;
mod store;
mod variables;

pub use agents::AgentStore;
pub use archive::{IncomingArchive, UploadedArchive};
pub use check::{CheckedTask, INSTRUCTION_BYTES_MAX, task_name};
pub use error::TaskError;
pub use limits::{AGENT_ARCHIVE_BYTES_MAX, ARCHIVE_BYTES_MAX, EXPANDED_BYTES_MAX, TaskLimits};
pub use reference::{TaskReference, find_task, item_id, item_id_of};
pub use store::{TaskStore, TaskUpload};
