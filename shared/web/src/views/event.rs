//! An event of a run.

use bench_domain::Timestamp;
use bench_state::{Event, EventKind};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

/// Something that happened to a run.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct EventView {
    /// Its id.
    #[schema(value_type = String, format = "uuid")]
    pub id: Uuid,
    /// Its kind, such as `run_started` or `benchmark_progress`.
    #[schema(value_type = String)]
    pub event_type: EventKind,
    /// The benchmark that it is about.
    pub benchmark_name: Option<String>,
    /// For people.
    pub message: String,
    /// For programs.
    #[schema(value_type = Option<Object>)]
    pub data: Option<Value>,
    /// When it was written.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,

    /// Its number in the run, from 1, without gaps.
    pub sequence: u64,
}

impl From<Event> for EventView {
    fn from(event: Event) -> Self {
        let Event { id, sequence, event_type, benchmark_name, message, data, created_at } = event;
        let benchmark_name = benchmark_name.map(|name| name.to_string());
        Self { id, event_type, benchmark_name, message, data, created_at, sequence }
    }
}
