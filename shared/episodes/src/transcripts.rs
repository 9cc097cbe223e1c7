//! Transcripts of agents in memory, so that a turn doesn't read all earlier ones again.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use bench_agents::{Part, Transcript};
use bench_blobs::{AgentRecords, BlobError, Blobs};
use futures_util::{StreamExt, TryStreamExt, stream};

/// Maximum number of transcripts in memory, and of the texts in all of them together in bytes. One is kept whatever its
/// size.
const TRANSCRIPTS_MAX: usize = 1_000;
const BYTES_MAX: usize = 64 << 20;
/// Number of records to read at once.
const READS: usize = 16;

/// Transcripts by the place of their records, the most recently used one last.
#[derive(Debug, Default)]
pub struct Transcripts {
    known: Mutex<VecDeque<Known>>,
}

#[derive(Debug)]
struct Known {
    prefix: String,
    records: u32,
    bytes: usize,
    transcript: Transcript,
}

impl Transcripts {
    /// Loads the transcript of the first `records` records; `None` if one of them is gone.
    ///
    /// # Errors
    /// If a record can't be read or is damaged.
    pub async fn load(
        &self,
        blobs: &Blobs,
        place: &AgentRecords,
        records: u32,
    ) -> Result<Option<Transcript>, BlobError> {
        let (first, mut transcript) = self.take(place, records).unwrap_or_default();
        let loaded = stream::iter(first..records).map(|number| blobs.agent_record(place, number));
        let loaded: Vec<_> = loaded.buffered(READS).try_collect().await?;
        for record in loaded {
            let Some(record) = record else { return Ok(None) };
            for part in record.parts {
                let part: Part = serde_json::from_value(part).map_err(|error| BlobError::Damaged {
                    key: place.prefix().to_owned(),
                    problem: error.to_string(),
                })?;
                transcript.extend([part]);
            }
        }
        Ok(Some(transcript))
    }

    /// Keeps a transcript in memory.
    pub fn note(&self, place: &AgentRecords, records: u32, transcript: &Transcript) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let before =
            known.iter().position(|one| one.prefix == place.prefix()).and_then(|at| known.remove(at));
        // The parts of known records never change, so only the new ones are copied.
        let mut one = before.filter(|one| one.records <= records).unwrap_or_else(|| Known {
            prefix: place.prefix().to_owned(),
            records: 0,
            bytes: 0,
            transcript: Transcript::default(),
        });
        let added = transcript.parts().get(one.transcript.parts().len()..).unwrap_or_default();
        one.bytes += added.iter().map(part_bytes).sum::<usize>();
        one.transcript.extend(added.to_vec());
        one.records = records;
        known.push_back(one);
        let bytes = |known: &VecDeque<Known>| known.iter().map(|one| one.bytes).sum::<usize>();
        while known.len() > TRANSCRIPTS_MAX || (known.len() > 1 && bytes(&known) > BYTES_MAX) {
            known.pop_front();
        }
    }

    /// Returns a known transcript with at most `records` records.
    fn take(&self, place: &AgentRecords, records: u32) -> Option<(u32, Transcript)> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.iter().find(|one| one.prefix == place.prefix() && one.records <= records)?;
        Some((found.records, found.transcript.clone()))
    }
}

fn part_bytes(part: &Part) -> usize {
    const OVERHEAD: usize = 200;
    OVERHEAD
        + match part {
            Part::Message(message) => message.text.len(),
            Part::Reply(reply) => reply.text.len() + reply.reasoning.as_ref().map_or(0, String::len),
            Part::Failure(failure) => failure.message.len(),
            Part::Shorten { .. } => 0,
            Part::Opening(opening) => {
                [&opening.agent, &opening.user].iter().map(|one| one.system.len() + one.tools.len()).sum()
            }
            Part::Dialogue(message) => {
                let calls = message.tool_calls.iter().map(|call| call.arguments.len() + OVERHEAD);
                message.content.as_ref().map_or(0, String::len) + calls.sum::<usize>()
            }
            Part::Replace { parts } => 8 * parts.len(),
        }
}
