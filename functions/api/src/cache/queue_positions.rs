//! Queue positions of runs.

use std::collections::HashMap;

use bench_domain::eta::{EtaRun, queue_schedule};
use bench_domain::{RunId, Timestamp};
use bench_web::views::{QueuePosition, RunView};

/// Queue positions of runs.
#[derive(Debug, Default)]
pub(crate) struct QueuePositions {
    positions: HashMap<RunId, QueuePosition>,
}

impl QueuePositions {
    pub(crate) fn position(&self, run: RunId) -> Option<QueuePosition> {
        self.positions.get(&run).copied()
    }

    pub(crate) fn new(views: &[RunView], slots: usize, now: Timestamp) -> Self {
        let ids: Vec<String> = views.iter().map(|view| view.id.to_string()).collect();
        let runs: Vec<EtaRun<'_>> =
            views.iter().zip(&ids).map(|(view, id)| EtaRun { id, ..view.eta() }).collect();
        let entries = queue_schedule(&runs, slots, now.as_micros());
        let positions = entries.into_iter().filter_map(|entry| {
            let position = QueuePosition {
                queue_position: entry.queue_position,
                start_delay_seconds: entry.start_delay_seconds,
                eta_seconds: entry.eta_seconds,
            };
            Some((entry.run_id.parse().ok()?, position))
        });
        Self { positions: positions.collect() }
    }
}
