//! Counts calls of a table.

use std::sync::{Arc, Mutex};

use bench_embedded::Recorder;

/// Calls, and their read and write units.
#[derive(Debug, Clone, Default)]
pub(crate) struct Usage {
    pub(crate) actions: Vec<String>,
    pub(crate) read_units: f64,
    pub(crate) write_units: f64,
}

/// Usage since it was last taken.
#[derive(Clone, Default)]
pub(crate) struct Meter(Arc<Mutex<Usage>>);

impl Meter {
    pub(crate) fn recorder(&self) -> Recorder {
        let usage = Arc::clone(&self.0);
        Recorder::for_completed_calls(move |completed| {
            let mut usage = usage.lock().unwrap();
            usage.actions.push(completed.call.action.to_owned());
            usage.read_units += completed.read_units;
            usage.write_units += completed.write_units;
        })
    }

    /// Returns the usage since the last time.
    pub(crate) fn take(&self) -> Usage {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}
