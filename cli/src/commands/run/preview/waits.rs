//! Waits of providers that are known before a run begins.

use std::time::Duration;

use bench_domain::run::{AuthMode, ModelRef, Owner};
use bench_domain::{ModelId, ModelRole, RunId};
use bench_inference::ModelSource;
use bench_stack::Stack;
use bench_state::{WaitKey, WaitKind};

use crate::commands::run::models::Model;
use crate::commands::run::order::Plan;
use crate::commands::run::place::endpoint_to_send;
use crate::{format, output};

/// Shows which of the ordered models get no requests now. `has_key` is true if the order has a key of its own.
pub(super) async fn note_ordered(plan: &Plan, stack: &Stack, has_key: bool) {
    for model in plan.models.iter().filter(|model| model.is_remote()) {
        note(stack, &ordered_key(plan, model, stack, has_key), &model.name).await;
    }
}

/// Shows which models of a stored run get no requests now.
pub(in crate::commands::run) async fn note_stored(stack: &Stack, run: RunId) {
    // The request that follows reports a run that can't be read.
    let Ok(Some(found)) = stack.state.run(run).await else { return };
    let spec = &found.spec;
    for role in ModelRole::ALL {
        let Some((model, auth)) = spec.asked_model(role) else { continue };
        note(stack, &WaitKey::new(model, role, auth, &spec.owner), &model.qualified()).await;
    }
}

/// Returns the key of the requests that the ordered run will send.
fn ordered_key(plan: &Plan, model: &Model, stack: &Stack, has_key: bool) -> WaitKey {
    let own = endpoint_to_send(stack, model.source, plan.base_url.as_deref());
    let base_url = plan.base_url.clone().or(own.as_ref().and_then(|own| own.base_url.clone()));
    let provider = model.source.map(ModelSource::as_str).unwrap_or_default();
    let asked = ModelRef {
        id: ModelId::from_name(provider, &model.slug),
        provider: provider.to_owned(),
        slug: model.slug.clone(),
        base_url,
        replay_key: None,
        endpoint_host: None,
    };
    let has_key = has_key || own.is_some_and(|own| own.key.is_some());
    let auth = if has_key { AuthMode::ApiKey } else { AuthMode::System };
    WaitKey::new(&asked, ModelRole::Model, auth, &Owner::Local)
}

async fn note(stack: &Stack, key: &WaitKey, name: &str) {
    // The run finds out in any case.
    let Ok(Some(wait)) = stack.state.shared_wait(key).await else { return };
    let left = wait.until.since(bench_clock::now());
    if !left.is_zero() {
        output::note(&describe(wait.kind, name, left));
    }
}

fn describe(kind: WaitKind, name: &str, left: Duration) -> String {
    let problem = match kind {
        WaitKind::RateLimited => "is rate limited",
        WaitKind::Unavailable => "is unavailable",
    };
    let left = format::seconds(left.as_secs_f64().ceil());
    format!("{name} {problem} for another {left}; one request asks at the start whether it answers again")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_described_in_one_line() {
        let line = describe(WaitKind::RateLimited, "chutes/a", Duration::from_millis(3_130_500));
        assert_eq!(
            line,
            "chutes/a is rate limited for another 52 m 11 s; one request asks at the start whether it answers again"
        );
        assert!(
            describe(WaitKind::Unavailable, "a", Duration::from_secs(5)).starts_with("a is unavailable for")
        );
    }
}
