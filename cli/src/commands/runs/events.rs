//! Events of a run.

use bench_domain::RunId;
use serde::Deserialize;
use serde_json::Value;

use crate::client::encode;
use crate::commands::Api;
use crate::table::{Column, Table};
use crate::views::Event;
use crate::{causes, output, show};

/// Number of events per page.
const EVENTS_PAGE: usize = 1_000;

/// A page of `/api/runs/{id}/events`.
#[derive(Debug, Deserialize)]
struct Events {
    events: Vec<Value>,
    cursor: String,
}

pub(super) async fn show(api: &Api, run: RunId, json: bool) -> anyhow::Result<()> {
    let mut all = Vec::new();
    let mut cursor = "0".to_owned();
    loop {
        let path = format!("/api/runs/{run}/events?limit={EVENTS_PAGE}&cursor={}", encode(&cursor));
        let page: Events = api.client.get(&path).await?;
        if page.events.is_empty() {
            break;
        }
        all.extend(page.events);
        cursor = page.cursor;
    }
    if json {
        return output::json(&all);
    }
    let events: Vec<Event> = all.into_iter().map(serde_json::from_value).collect::<Result<_, _>>()?;
    output::print_table(&table(&events))
}

fn table(events: &[Event]) -> Table {
    let mut table = Table::new([
        Column::number("n").drop_as(1),
        Column::text("time (UTC)"),
        Column::text("event"),
        Column::words("benchmark"),
        Column::words("message"),
    ]);
    for event in events {
        table.row([
            event.sequence.to_string(),
            event.created_at.whole_seconds().to_string(),
            event.event_type.clone(),
            event.benchmark_name.as_deref().map(show::benchmark_name).unwrap_or_default(),
            causes::readable(&event.message).into_owned(),
        ]);
    }
    table
}
