//! Requests that repeat or continue a run.

use std::env;

use bench_domain::{Code, RunId, Secret};
use bench_inference::{InferenceConfig, Provider};
use serde_json::Value;

use super::requeue_path;
use crate::client::Client;
use crate::exit::Problem;
use crate::refusal::Refusal;
use crate::views::Run;

/// Requeues or resumes a run. On this machine, a run whose key is needed again gets the one of this process's variables,
/// since the command that ordered it may have taken its own from there.
pub(super) async fn repeat(
    client: &Client,
    run: RunId,
    found: &Run,
    body: Option<&Value>,
) -> anyhow::Result<()> {
    let path = requeue_path(run);
    let error = match client.post::<Value>(&path, body).await {
        Ok(_) => return Ok(()),
        Err(error) => error,
    };
    let code = error.downcast_ref().and_then(Refusal::code);
    if client.address().is_none() && code == Some(Code::ProviderNotConfigured) {
        let hint = "nothing was changed; finished samples are kept";
        return Err(Problem::usage(error.to_string()).hint(hint).into());
    }
    let needs_key = code == Some(Code::KeyRequired);
    match own_key(found).filter(|_| needs_key && client.address().is_none()) {
        Some(key) => client.clone().with_key(Some(key)).post::<Value>(&path, body).await.map(drop),
        None => Err(error),
    }
}

/// Returns the key in this process's variables for the address that the run asks. A key is for one address only.
fn own_key(run: &Run) -> Option<Secret> {
    let inference = InferenceConfig::from_vars(|name| env::var(name).ok()).ok()?;
    let provider = Provider::from_name(run.provider())?;
    let host = inference.host(provider, None)?;
    inference.endpoint(provider).ok()?.key().filter(|_| run.endpoint_host() == Some(&host)).cloned()
}
