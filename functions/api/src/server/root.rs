//! The start page.

use std::fmt::Write;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bench_domain::RunStatus;
use bench_domain::eta::{format_duration_seconds, format_percent};
use bench_state::RunFilter;
use bench_web::ApiError;
use bench_web::page::{escape, page};
use bench_web::views::RunView;
use http::{HeaderMap, header};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{Api, list_runs};

/// Number of runs on the page.
const RUNS_SHOWN: u64 = 50;
/// Interval at which the page reloads while a run is open, in seconds.
const REFRESH_S: u32 = 5;

/// Name and version of the server, as clients of the compatible system expect them.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RootView {
    name: &'static str,
    version: &'static str,
    docs: &'static str,
}

/// Returns the name of the server as JSON, or for browsers a page with the latest runs.
#[utoipa::path(
    get, path = "/", tag = "server",
    responses((status = 200, content((RootView = "application/json"), (String = "text/html")))),
)]
pub(crate) async fn root(State(api): State<Arc<Api>>, headers: HeaderMap) -> Result<Response, ApiError> {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !accept.contains("text/html") {
        let root = RootView { name: "Chutes Bench Runner", version: "0.1.0", docs: "/docs" };
        return Ok(([(header::VARY, "Accept")], Json(root)).into_response());
    }
    let (runs, total) = list_runs(&api, &RunFilter::default(), 0, RUNS_SHOWN).await?;
    let is_open = runs.iter().any(|run| run.status.is_open());
    let mut response = page("Bench Runner", &content(&api, &runs, total), is_open.then_some(REFRESH_S));
    response.headers_mut().insert(header::VARY, header::HeaderValue::from_static("Accept"));
    Ok(response)
}

fn content(api: &Api, runs: &[RunView], total: u64) -> String {
    let mut html = format!(
        "<h1>Bench Runner <span class=\"dim\">{}</span></h1>\n\
         <p><a href=\"/docs\">API</a> · <a href=\"/api/benchmarks\">benchmarks</a> · \
         <a href=\"/api/models\">models</a> · <a href=\"/api/runs\">runs as JSON</a></p>\n",
        escape(&api.config.runs.software),
    );
    if api.config.maintenance_mode {
        let _ = writeln!(html, "<p class=\"warn\">{}</p>", escape(&api.config.maintenance_message));
    }
    let _ = writeln!(html, "<h2>Latest runs <span class=\"dim\">{} of {total}</span></h2>", runs.len());
    if runs.is_empty() {
        html.push_str("<p>There are no runs yet. Order one with <code>POST /api/runs</code>.</p>");
        return html;
    }
    html.push_str(
        "<div class=\"scroll\"><table><tr><th>created</th><th>model</th><th>benchmarks</th><th>status</th>\
         <th class=\"number\">score</th><th class=\"number\">coverage</th><th>files</th></tr>\n",
    );
    for run in runs {
        html.push_str(&row(run));
    }
    html.push_str("</table></div>");
    html
}

fn row(run: &RunView) -> String {
    let benchmarks: Vec<String> = run
        .benchmarks
        .iter()
        .map(|benchmark| {
            let demo = if benchmark.demo { " <strong class=\"warn\">demo</strong>" } else { "" };
            format!(
                "<a href=\"/api/runs/{}/benchmarks/{}\">{}</a>{demo}",
                run.id,
                escape(&benchmark.benchmark_name),
                escape(&bench_benchmarks::listed_name(&benchmark.benchmark_name))
            )
        })
        .collect();
    let colour = match run.status {
        RunStatus::Running | RunStatus::Succeeded => "good",
        RunStatus::Failed => "bad",
        RunStatus::Canceled => "warn",
        RunStatus::Queued => "dim",
    };
    let mut status = format!("<span class=\"{colour}\">{}</span>", run.status);
    match run.status {
        RunStatus::Running => {
            let _ = write!(status, " {}/{}", run.progress.completed, run.progress.total);
        }
        RunStatus::Queued => {
            if let Some(position) = run.queue_position {
                let _ = write!(status, " no. {position}");
            }
        }
        _ => {}
    }
    if let Some(seconds) = run.eta_seconds {
        let _ = write!(status, ", {} left", format_duration_seconds(Some(seconds)));
    }
    if let Some(error) = &run.error_message {
        let _ = write!(status, "<br><span class=\"dim\">{}</span>", escape(error));
    }
    let score = escape(&format_percent(run.overall_score));
    let demo =
        if run.demo && run.overall_score.is_some() { " <strong class=\"warn\">demo</strong>" } else { "" };
    let files = match run.status {
        RunStatus::Succeeded | RunStatus::Failed => format!(
            "<a href=\"/api/runs/{0}/export?format=zip\">ZIP</a> <a href=\"/api/runs/{0}/export?format=csv\">CSV</a>",
            run.id
        ),
        _ => String::new(),
    };
    format!(
        "<tr><td><a href=\"/api/runs/{}\">{}</a></td><td>{}</td><td>{}</td><td>{status}</td>\
         <td class=\"number\">{score}{demo}</td><td class=\"number\">{}</td><td>{files}</td></tr>\n",
        run.id,
        escape(&run.created_at.whole_seconds().to_string()),
        escape(&run.model),
        benchmarks.join(", "),
        escape(&format_percent(run.coverage)),
    )
}
