//! Answers that need a judge: separate turns that survive the same failures as a worker's attempts.

mod budget;
mod failures;
mod kills;
mod rejudging;
mod replies;

use bench_domain::RunId;
use bench_state::{SampleRecord, State};
use bench_tests::model_server::ModelRequest;

use crate::support::World;

/// The judged benchmark.
const NAME: &str = "aa_omniscience";
/// Tokens that the model server reports for an answer or a reply: 100 for the prompt, 20 for the text.
const TOKENS: u64 = 120;

/// Returns the number of questions to the model and to the judge so far.
fn question_counts(world: &World) -> (u64, u64) {
    let log = world.model.log();
    let judge = log.iter().filter(|request| request.is_judge).count() as u64;
    (log.len() as u64 - judge, judge)
}

/// Returns the number of questions to the judge about an item.
fn judge_question_count(world: &World, item: usize) -> u64 {
    world.model.question_counts().get(&format!("judge o{item}")).copied().unwrap_or(0)
}

/// Returns the text of the last message sent.
fn last_message(request: &ModelRequest) -> String {
    let messages = request.body["messages"].as_array().unwrap();
    messages.last().unwrap()["content"].as_str().unwrap().to_owned()
}

/// Returns the stored records of all samples of a run.
async fn stored_samples(world: &World, run: RunId) -> Vec<SampleRecord> {
    let found = world.stored_run(run).await;
    world.samples(&found, NAME).await
}

/// Returns the spending that counts for a budget.
async fn run_spending(state: &State, world: &World, run: RunId) -> bench_domain::Spending {
    let found = world.stored_run(run).await;
    let shards: Vec<bench_state::Shards> =
        found.benchmarks.iter().filter_map(bench_state::Shards::from_benchmark).collect();
    state.run_count(run, &shards).await.unwrap().spending()
}
