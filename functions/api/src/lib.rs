//! The HTTP API: catalog, runs, items, events, judgings, comparison, schedules, terminal tasks.
//!
//! A handler reads the request, identifies the caller, calls a function that is independent of HTTP, and
//! renders the result. The command line calls the same functions ([`cancel_run`] and others, and
//! [`bench_runs::Orders`] for new runs) in its own process.
//!
//! Anyone may read what isn't private; only owners and admins may change. No handler waits for a model or a dataset, with
//! one exception: ordering a run may wait a few seconds for the provider's list of models.

mod auth;
mod cache;
mod catalog;
mod config;
mod context;
mod leaderboard;
mod ops;
mod refusal;
mod runs;
mod schedules;
mod server;
mod sign_in;
mod tasks;
mod views;

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use bench_lambda::metrics;
use bench_web::Guard;

pub use catalog::benchmarks::{benchmarks, default_benchmarks};
pub use catalog::models::{ModelView, list_models, sync_models};
pub use config::{ApiConfig, coverage_min};
pub use context::Api;
pub use ops::overview;
pub use runs::compare::{BenchmarkComparison, ComparisonView, compare_runs};
pub use runs::details::{DetailsView, ItemsPage, benchmark_details};
pub use runs::estimate::run_view;
pub use runs::interrupt::interrupt_run;
pub use runs::judgings::{JudgingView, JudgingsView, judgings};
pub use runs::lifecycle::{cancel_run, delete_run, requeue_run, requeue_run_with};
pub use runs::list::list_runs;
pub use runs::page_item::PageItem;
pub use runs::requeue::{ChosenSample, Requeue};
pub use runs::viewer::Viewer;
pub use schedules::{FiringView, ScheduleView};
pub use server::document;
pub use sign_in::SignInSettings;
pub use views::benchmark::{
    BenchmarkJudgeView, BenchmarkView, DatasetFacts, OfficialTextView, OptionView, PromptView, ProtocolView,
    SandboxView, SourceView, StoredData, StoredDataset, describe,
};
pub use views::code_task::{
    AdmissionProofView, CodeTaskDetailsView, CodeTaskView, CodeTasksView, ProjectFileView,
    RefusedSolutionView, code_task, code_tasks,
};
pub use views::overview::OverviewView;

/// Returns all routes of this function, for a server that adds its own routes and then calls [`bench_web::finish`].
pub fn routes(api: Arc<Api>) -> Router {
    let guard = Guard::new(api.access.clone(), api.state.clone(), api.config.secret_limits, || {
        metrics::count(metrics::WRONG_ADMIN_SECRETS, 1.0);
    });
    // A read-only function has no permission to write the count.
    let guard = if api.config.reads_only { guard } else { guard.writing() };
    let routes = Router::new()
        .merge(server::routes())
        .merge(auth::routes())
        .merge(catalog::routes())
        .merge(runs::routes())
        .merge(leaderboard::routes())
        .merge(schedules::routes())
        .merge(tasks::routes())
        .merge(ops::routes());
    // Outside of the guard, which looks at the caller's key.
    let take_key = from_fn_with_state(Arc::clone(&api), tasks::query_key::take_key);
    guard.around(routes).layer(take_key).with_state(api)
}

/// Returns the complete API server: [`routes`] with the layers of [`bench_web::finish`].
pub fn router(api: Arc<Api>) -> Router {
    let server = api.config.server.clone();
    bench_web::finish(routes(api), server)
}
