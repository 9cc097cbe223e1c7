//! An event of a run.

use bench_domain::Timestamp;
use bench_state::{Event, EventKind};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

/// Event of a run.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct EventView {
    /// Id of the event.
    #[schema(value_type = String, format = "uuid")]
    pub id: Uuid,
    /// Kind of event, such as `run_started` or `benchmark_progress`.
    #[schema(value_type = String)]
    pub event_type: EventKind,
    /// Name of the benchmark that the event concerns; null for events of the whole run.
    pub benchmark_name: Option<String>,
    /// Sentence for people.
    pub message: String,
    /// Data for programs; null if there are none.
    #[schema(value_type = Option<Object>)]
    pub data: Option<Value>,
    /// Time of the event.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,

    /// Number of the event within its run, from 1, without gaps.
    pub sequence: u64,
}

impl From<Event> for EventView {
    fn from(event: Event) -> Self {
        let Event { id, sequence, event_type, benchmark_name, message, data, created_at } = event;
        let benchmark_name = benchmark_name.map(|name| name.to_string());
        Self { id, event_type, benchmark_name, message, data, created_at, sequence }
    }
}
