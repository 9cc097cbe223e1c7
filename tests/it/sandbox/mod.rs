//! Answers that are run in sandboxes: jobs in turns, that survive what a worker's do.
//!
//! The sandbox host is the tests' own: real shells and Python programs in folders, that fail as a test wants.

mod kills;
mod trouble;

use bench_domain::RunId;
use bench_sandy::testing::{Call, Fault, Options};
use bench_state::SampleRecord;
use bench_tests::model_server::{Ask, Reply};
use std::sync::Arc;

use crate::support::{Settings, World, data};

/// The benchmark whose answers are run here.
const NAME: &str = "livecodebench";

/// A world with a sandbox host that answers as this rule says.
fn ruled(rule: impl Fn(&Call) -> Fault + Send + Sync + 'static) -> Settings {
    Settings {
        sandboxes: Some(Options { rule: Some(Arc::new(rule)), ..Options::default() }),
        ..Settings::default()
    }
}

/// A world with a sandbox host without faults.
fn faultless() -> Settings {
    Settings { sandboxes: Some(Options::default()), ..Settings::default() }
}

fn right(ask: &Ask) -> Reply {
    Reply::Text(data::right(&ask.item))
}

/// Every sample of a run, as it is stored.
async fn samples(world: &World, run: RunId) -> Vec<SampleRecord> {
    let found = world.found(run).await;
    world.samples(&found, NAME).await
}

/// Questions to the model so far.
fn asked(world: &World) -> u64 {
    world.model.log().len() as u64
}
