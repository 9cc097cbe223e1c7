//! The dataset hub and its token.

use std::path::PathBuf;
use std::time::Duration;

use bench_datasets::{DatasetError, LibraryConfig, ask_hub};
use reqwest::Url;

use super::Settings;
use super::finding::{Check, Finding, with_timeout};

/// Maximum time for the hub to answer.
const LIMIT: Duration = Duration::from_secs(10);
const TOKEN_VARIABLE: &str = "HF_TOKEN";

/// Reads the settings of the hub, with a shorter timeout than downloads have.
pub(super) fn config(settings: &Settings) -> Result<LibraryConfig, String> {
    let is_benchmark = |name: &str| bench_benchmarks::find(name).is_some();
    let config = LibraryConfig::from_vars(PathBuf::new(), settings.vars.clone(), is_benchmark)?;
    Ok(LibraryConfig { read_timeout: LIMIT, ..config })
}

/// Returns host and port of an address. The rest may contain a password.
pub(super) fn host(address: &str) -> String {
    let url = Url::parse(address).ok();
    let host = url.as_ref().and_then(Url::host_str).unwrap_or("the configured address");
    url.as_ref().and_then(Url::port).map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

pub(super) async fn check(settings: &Settings) -> Vec<Finding> {
    let hub = Check::new("hub", "dataset hub");
    let config = match config(settings) {
        Ok(config) => config,
        Err(problem) => return vec![hub.problem(problem, "correct the variable, or unset it")],
    };
    let (host, has_token) = (host(&config.hub_url), config.token.is_some());
    if settings.offline {
        return vec![hub.skipped(host), token(has_token, None)];
    }
    if config.offline {
        let fact = "HF_HUB_OFFLINE is set: only stored datasets and demo data are used";
        return vec![hub.skipped(fact), token(has_token, None)];
    }
    let Some(dataset) = dataset() else { return Vec::new() };
    let network =
        "check the network, HTTPS_PROXY and HF_ENDPOINT; until then, runs use stored datasets or demo data";
    match with_timeout(LIMIT, ask_hub(config, dataset)).await {
        None => {
            let fact = format!("{host}: no answer within {} s", LIMIT.as_secs());
            vec![hub.problem(fact, network), token(has_token, None)]
        }
        Some(Ok(()) | Err(DatasetError::Gated { .. })) => vec![hub.ok(host), token(has_token, Some(Ok(())))],
        Some(Err(DatasetError::TokenRefused { problem, .. })) => {
            vec![hub.ok(host), token(has_token, Some(Err(problem)))]
        }
        Some(Err(DatasetError::Unreachable { problem, .. })) => {
            vec![hub.problem(format!("{host}: {problem}"), network), token(has_token, None)]
        }
        Some(Err(error)) => {
            let fix = "check that HF_ENDPOINT is the address of the Hugging Face hub or of a mirror";
            vec![hub.warning(format!("{host} answers, but {error}"), fix), token(has_token, None)]
        }
    }
}

/// Returns the hub id of a dataset without terms to accept.
fn dataset() -> Option<&'static str> {
    let open = bench_benchmarks::all().iter().filter(|benchmark| benchmark.spec().gate.is_none());
    open.flat_map(|benchmark| benchmark.spec().sources).map(|source| source.id).next()
}

/// Reports on the token. `reply` is the hub's response to it, if the hub was called.
fn token(is_set: bool, reply: Option<Result<(), String>>) -> Finding {
    let check = Check::new("hub-token", "hub token");
    if !is_set {
        let gated: Vec<String> = bench_benchmarks::gated().iter().map(ToString::to_string).collect();
        let fix = format!(
            "accept the terms of {} at the hub, then set {TOKEN_VARIABLE} to a token of that account",
            gated.join(", ")
        );
        return check.not_set_up(format!("{TOKEN_VARIABLE} is not set"), fix);
    }
    match reply {
        None => check.skipped(format!("{TOKEN_VARIABLE} is set")),
        Some(Ok(())) => check.ok(format!("{TOKEN_VARIABLE} is accepted")),
        Some(Err(problem)) => {
            let fix = format!(
                "make a new token at the hub (Settings, Access Tokens), and set {TOKEN_VARIABLE} to it"
            );
            check.problem(format!("{TOKEN_VARIABLE} is refused: {problem}"), fix)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::Status;

    #[test]
    fn an_address_is_shown_without_its_password() {
        for (address, shown) in [
            ("https://huggingface.co", "huggingface.co"),
            ("http://user:hidden@127.0.0.1:8080/hub", "127.0.0.1:8080"),
            ("nonsense", "the configured address"),
        ] {
            assert_eq!(host(address), shown);
        }
    }

    #[test]
    fn gated_benchmarks_are_named_where_there_is_no_token() {
        let finding = token(false, Some(Ok(())));
        assert_eq!(finding.status, Status::NotSetUp);
        assert!(finding.fix.unwrap().contains("gpqa_diamond"));
        assert_eq!(token(true, None).status, Status::Skipped);
        assert_eq!(token(true, Some(Err("no".into()))).status, Status::Problem);
        assert!(dataset().is_some());
    }
}
