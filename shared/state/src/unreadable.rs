//! Messages that can't be parsed, stored for operators to look at.

use bench_domain::{RunId, Timestamp};

use crate::attributes::{Reader, number, text};
use crate::client::{condition_held, expires_at};
use crate::keys::key;
use crate::{State, StateError};

/// Partition of unreadable messages, newest last.
const UNREADABLE: &str = "UNREADABLE";
/// Maximum number of bytes of a message's text that are stored.
pub const UNREADABLE_TEXT_BYTES_MAX: usize = 2_048;
/// Seconds that a record is kept: 90 days.
const KEEP_S: i64 = 90 * 24 * 3_600;

/// Message that this program couldn't parse and removed from its dead-letter queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableRecord {
    /// Message id of SQS.
    pub message_id: String,
    /// Queue that the message was sent to.
    pub queue: String,
    /// Time at which it was sent.
    pub sent_at: Timestamp,
    /// Beginning of the text, up to [`UNREADABLE_TEXT_BYTES_MAX`].
    pub text: String,
    /// Reason why it can't be parsed.
    pub problem: String,
    /// Run that its text seems to name.
    pub run: Option<RunId>,
    /// Sample that its text seems to name.
    pub sample: Option<String>,
}

impl State {
    /// Stores an unreadable message for 90 days. A repetition writes nothing. Returns true if this call wrote it.
    pub async fn note_unreadable(
        &self,
        message: &UnreadableRecord,
        now: Timestamp,
    ) -> Result<bool, StateError> {
        // The time of sending stays the same however often the message is delivered.
        let sort = format!("{:020}#{}", message.sent_at.as_micros().max(0), message.message_id);
        let end = message.text.floor_char_boundary(UNREADABLE_TEXT_BYTES_MAX);
        let mut put = self
            .client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(key(UNREADABLE, sort)))
            .item("message_id", text(&message.message_id))
            .item("queue", text(&message.queue))
            .item("sent_at", number(message.sent_at.as_micros()))
            .item("body", text(message.text.get(..end).unwrap_or_default()))
            .item("problem", text(&message.problem))
            .item("expires_at", number(expires_at(now, KEEP_S)))
            .condition_expression("attribute_not_exists(pk)");
        if let Some(run) = message.run {
            put = put.item("run", text(run.to_string()));
        }
        if let Some(sample) = &message.sample {
            put = put.item("sample", text(sample));
        }
        condition_held("keep an unreadable message", put.send().await)
    }

    /// Lists at most `limit` unreadable messages, newest first.
    pub async fn unreadable(&self, limit: u32) -> Result<Vec<UnreadableRecord>, StateError> {
        let got = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("pk = :unreadable")
            .expression_attribute_values(":unreadable", text(UNREADABLE))
            .scan_index_forward(false)
            .limit(i32::try_from(limit.max(1)).unwrap_or(i32::MAX))
            .send()
            .await
            .map_err(|error| StateError::sdk("list unreadable messages", error))?;
        let messages = got.items().iter().map(|record| {
            let reader = Reader::new(record);
            let run = reader.maybe_text("run").map(str::parse).transpose();
            Ok(UnreadableRecord {
                message_id: reader.text("message_id")?.to_owned(),
                queue: reader.text("queue")?.to_owned(),
                sent_at: reader.time("sent_at")?,
                text: reader.text("body")?.to_owned(),
                problem: reader.text("problem")?.to_owned(),
                run: run.map_err(|error| StateError::damaged(reader.key(), error))?,
                sample: reader.maybe_text("sample").map(str::to_owned),
            })
        });
        messages.collect()
    }
}
