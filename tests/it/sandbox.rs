//! Answers that are run in sandboxes: jobs in turns that survive the same failures as a worker's attempts.
//!
//! The tests have their own sandbox host: real shells and Python programs in folders, which fail as a test requires.

mod failures;
mod kills;

use bench_domain::RunId;
use bench_sandy::testing::{Call, Fault, Options};
use bench_state::SampleRecord;
use bench_tests::model_server::{ModelRequest, Reply};
use std::sync::Arc;

use crate::support::{Settings, World, data};

/// The benchmark whose answers are run.
const NAME: &str = "livecodebench";

/// Returns settings with a sandbox host that fails by this rule.
fn settings_with_host_rule(rule: impl Fn(&Call) -> Fault + Send + Sync + 'static) -> Settings {
    Settings {
        sandboxes: Some(Options { rule: Some(Arc::new(rule)), ..Options::default() }),
        ..Settings::default()
    }
}

/// Returns settings with a sandbox host without faults.
fn settings_without_faults() -> Settings {
    Settings { sandboxes: Some(Options::default()), ..Settings::default() }
}

fn right_reply(request: &ModelRequest) -> Reply {
    Reply::Text(data::right_answer(&request.item))
}

/// Returns the stored records of all samples of a run.
async fn stored_samples(world: &World, run: RunId) -> Vec<SampleRecord> {
    let found = world.stored_run(run).await;
    world.samples(&found, NAME).await
}

/// Returns the number of questions to the model so far.
fn question_count(world: &World) -> u64 {
    world.model.log().len() as u64
}
