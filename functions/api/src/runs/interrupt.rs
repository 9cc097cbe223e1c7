//! Interruption of runs whose command has ended.

use bench_domain::RunId;
use bench_state::{EventKind, NewEvent, Origin, Renewal, StateError, Transition};

use super::lifecycle::WRITE_ATTEMPTS_MAX;
use crate::Api;

/// Interrupts an open run that this process works on for another command, after that command has ended. Nobody works on
/// the run until it is resumed. Returns false, and changes nothing, if the run is over or belongs to a server.
///
/// # Errors
/// Returns an error if the state can't be read or written.
pub async fn interrupt_run(api: &Api, run: RunId) -> Result<bool, StateError> {
    let worked_on = Origin::Foreground { start: api.state.epoch() };
    for _ in 0..WRITE_ATTEMPTS_MAX {
        let Some(record) = api.state.run(run).await? else { return Ok(false) };
        if !record.state.status().is_open() || record.origin != worked_on {
            return Ok(false);
        }
        let event = NewEvent::new(EventKind::RunInterrupted, "Run interrupted: its command has ended");
        let renewal = Renewal { origin: Some(Origin::INTERRUPTED), ..Renewal::default() };
        let (state, generation) = (&record.state, record.generation);
        let now = bench_clock::now();
        let changed = api.state.change_run_with(&record, state, generation, &event, now, renewal).await?;
        if changed == Transition::Done {
            tracing::info!(run.id = %run, "Interrupted run {run}");
            return Ok(true);
        }
    }
    Ok(false)
}
