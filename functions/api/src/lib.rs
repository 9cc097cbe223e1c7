//! The HTTP API: catalogue, runs, items, events, judgings, comparison, schedules.
//!
//! A handler reads the request, asks who calls, calls a function that knows nothing of HTTP, and shows what
//! came out. Those functions ([`cancel_run`] and the like, and [`bench_runs::Orders`] for new runs) are also what the
//! command line calls in its own process.
//!
//! Reading is public, changing is owned. Nothing here waits for a model or a dataset; the one exception is
//! the look at the provider's list of models when a run is ordered, for a few seconds at most.

mod access;
mod admission;
mod benchmarks;
mod budget;
mod choices;
mod compare;
mod config;
mod context;
mod create;
mod details;
mod estimate;
mod events;
mod health;
mod judge;
mod judgings;
mod lifecycle;
mod models;
mod openapi;
mod ops;
mod order;
mod page_item;
mod refusal;
mod rejudge;
mod requests;
mod root;
mod runs;
mod schedules;
mod until;

use std::sync::Arc;

use axum::Router;
use axum::routing::{delete, get, post};
use bench_lambda::metrics;
use bench_web::Guard;

pub use benchmarks::{
    BenchmarkView, DatasetFacts, JudgeView, OfficialTextView, OptionView, PromptView, ProtocolView,
    SandboxView, SourceView, Stored, StoredDataset, benchmarks, default_benchmarks, describe,
};
pub use compare::{BenchmarkComparison, ComparisonView, compare_runs};
pub use config::{ApiConfig, coverage_min};
pub use context::Api;
pub use details::{DetailsView, ItemsPage, benchmark_details};
pub use judgings::{JudgingView, JudgingsView, judgings};
pub use lifecycle::{Requeue, cancel_run, delete_run, requeue_run, requeue_run_with};
pub use models::{ModelView, list_models, sync_models};
pub use openapi::document;
pub use ops::{OverviewView, overview};
pub use page_item::PageItem;
pub use refusal::refusal;
pub use runs::{list_runs, run_view};
pub use schedules::{FiringView, ScheduleView};

/// All routes of this function, for a server that adds routes of its own and then calls
/// [`bench_web::finish`].
pub fn routes(api: Arc<Api>) -> Router {
    let guard = Guard::new(api.access.clone(), api.state.clone(), api.config.secret_limits, || {
        metrics::count(metrics::WRONG_ADMIN_SECRETS, 1.0);
    });
    // Who only reads has no right to write the count.
    let guard = if api.config.reads_only { guard } else { guard.writing() };
    let routes = Router::new()
        .route("/", get(root::root))
        .route("/docs", get(openapi::docs))
        .route("/openapi.json", get(openapi::json))
        .route("/api/health", get(health::health))
        .route("/api/status", get(health::status))
        .route("/api/auth/status", get(health::auth_status))
        .route("/api/auth/login", get(health::auth_login))
        .route("/api/auth/me", get(health::auth_me))
        .route("/api/models", get(models::get_models))
        .route("/api/admin/sync-models", post(models::post_sync))
        .route("/api/benchmarks", get(benchmarks::get_benchmarks))
        .route("/api/benchmarks/{benchmark_name}", get(benchmarks::get_benchmark))
        .route("/api/runs", get(runs::get_runs).post(create::post_run))
        .route("/api/runs/api", post(create::post_run_with_key))
        .route("/api/runs/{run_id}", get(runs::get_run).delete(lifecycle::delete))
        .route("/api/runs/{run_id}/cancel", post(lifecycle::post_cancel))
        .route("/api/runs/{run_id}/rejudge", post(rejudge::post_rejudge))
        .route("/api/runs/{run_id}/judgings", get(judgings::get_judgings))
        .route("/api/admin/runs/{run_id}/requeue", post(lifecycle::post_requeue))
        .route("/api/runs/{run_id}/benchmarks/{benchmark_name}", get(details::get_details))
        .route("/api/runs/{run_id}/events", get(events::get_events))
        .route("/api/schedules", get(schedules::get_schedules).post(schedules::post_schedule))
        .route(
            "/api/schedules/{schedule_id}",
            get(schedules::get_schedule).patch(schedules::patch_schedule).delete(schedules::delete_schedule),
        )
        .route("/api/schedules/{schedule_id}/firings", get(schedules::get_firings))
        .route("/api/schedules/{schedule_id}/run-now", post(schedules::post_run_now))
        .route("/api/runs/{run_id}/compare/{other_id}", get(compare::get_comparison))
        .route("/api/ops/overview", get(ops::get_overview))
        .route("/api/ops/sandy/resources", get(ops::get_resources))
        .route("/api/ops/sandy/metrics", get(ops::get_metrics))
        .route("/api/ops/sandy/sandboxes", get(ops::get_sandboxes))
        .route("/api/admin/access", get(access::get_entries).post(access::post_entry))
        .route("/api/admin/access/{entry}", delete(access::delete_entry));
    guard.around(routes).with_state(api)
}

/// The whole API as a server: [`routes`] with everything that stands around them.
pub fn router(api: Arc<Api>) -> Router {
    let server = api.config.server.clone();
    bench_web::finish(routes(api), server)
}
