//! Queue positions of runs.

use std::collections::HashMap;

use bench_domain::eta::{EtaRun, queue_schedule};
use bench_domain::{RunId, Timestamp};
use bench_web::views::{Place, RunView};

/// Queue positions of runs.
#[derive(Debug, Default)]
pub(crate) struct Places {
    places: HashMap<RunId, Place>,
}

impl Places {
    pub(crate) fn place(&self, run: RunId) -> Option<Place> {
        self.places.get(&run).copied()
    }

    pub(crate) fn new(views: &[RunView], slots: usize, now: Timestamp) -> Self {
        let ids: Vec<String> = views.iter().map(|view| view.id.to_string()).collect();
        let runs: Vec<EtaRun<'_>> =
            views.iter().zip(&ids).map(|(view, id)| EtaRun { id, ..view.eta() }).collect();
        let entries = queue_schedule(&runs, slots, now.as_micros());
        let places = entries.into_iter().filter_map(|entry| {
            let place = Place {
                queue_position: entry.queue_position,
                start_delay_seconds: entry.start_delay_seconds,
                eta_seconds: entry.eta_seconds,
            };
            Some((entry.run_id.parse().ok()?, place))
        });
        Self { places: places.collect() }
    }
}
