//! Samples: claims, handovers, commits and pages.

mod claim;
mod commit;
mod commits;
mod counts;
mod excerpt;
mod finished;
mod hand_over;
mod read;
mod record;
mod turn;

use aws_sdk_dynamodb::types::AttributeValue;

pub use claim::{Claim, ClaimedRecord};
pub use commit::Commit;
pub use commits::{Commits, EndedSample};
pub use counts::ShardCount;
pub use excerpt::SampleExcerpt;
pub use finished::SampleResult;
pub use hand_over::{Handover, ReplyWithoutVerdict};
pub(crate) use read::READ_BATCH_MAX;
pub use record::SampleRecord;
pub use turn::{AnswerRecord, Turn};

/// Values of an update expression, by placeholder.
type Values = Vec<(&'static str, AttributeValue)>;
