//! Checks of providers: a key is set, and the provider answers and accepts it.

use std::time::Duration;

use bench_inference::{
    ChatClient, Endpoint, EndpointError, HttpOptions, InferenceConfig, KeyCheck, PROVIDERS, Provider,
};
use futures_util::future::{join, join_all};

use super::Machine;
use super::finding::{Check, Finding, within};

/// Maximum time for all calls to a provider.
const LIMIT: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) async fn check(machine: &Machine) -> Vec<Finding> {
    let inference = match &machine.inference {
        Ok(inference) => inference,
        Err(error) => {
            let check = Check::new("providers", "providers");
            return vec![
                check.problem(error.to_string(), format!("correct {}, or unset it", error.variable)),
            ];
        }
    };
    let options =
        HttpOptions { idle_timeout: LIMIT, connect_timeout: CONNECT_TIMEOUT, ..HttpOptions::default() };
    let client = ChatClient::new(options);
    join_all(PROVIDERS.iter().map(|provider| one(provider, inference, &client, machine.offline))).await
}

async fn one(
    provider: &'static Provider,
    inference: &InferenceConfig,
    client: &ChatClient,
    offline: bool,
) -> Finding {
    let check = Check::new(format!("provider-{}", provider.name), provider.name);
    let endpoint = match inference.endpoint(provider) {
        Ok(endpoint) => endpoint,
        Err(EndpointError::NoBaseUrl { .. }) => {
            let variable = provider.base_url_variable;
            let fix =
                format!("give `bench run` --base-url, or set {variable} to use `{}/…` models", provider.name);
            return check.not_set_up(format!("{variable} is not set"), fix);
        }
        Err(EndpointError::DeleteOnlyWrapper { .. }) => {
            let variable = provider.key_variable;
            let fix = format!("set {variable}, or write it into `.env`, to use `{}/…` models", provider.name);
            return check.not_set_up(format!("{variable} is not set"), fix);
        }
        Err(error) => {
            return check.problem(error.to_string(), format!("correct {}", provider.base_url_variable));
        }
    };
    let host = inference.host(provider, None).unwrap_or_default();
    let has_key = inference.provider(provider).is_some_and(|config| config.key.is_some());
    if offline {
        let fact = if has_key { format!("{} is set", provider.key_variable) } else { host };
        return check.skipped(fact);
    }
    let asked = within(LIMIT, async {
        if has_key {
            with_key(&check, client, inference, &endpoint, &host).await
        } else {
            without_key(&check, client, &endpoint, &host).await
        }
    });
    asked.await.unwrap_or_else(|| {
        check.problem(format!("{host}: no answer within {} s", LIMIT.as_secs()), network_fix(provider))
    })
}

fn network_fix(provider: &Provider) -> String {
    format!("check the network, HTTPS_PROXY behind a proxy, and {}", provider.base_url_variable)
}

async fn with_key(
    check: &Check,
    client: &ChatClient,
    inference: &InferenceConfig,
    endpoint: &Endpoint,
    host: &str,
) -> Finding {
    let provider = endpoint.provider();
    let variable = provider.key_variable;
    let (key, models) = join(
        client.check_key(endpoint, inference.account_url(provider)),
        client.list_gateway_models(endpoint),
    )
    .await;
    let models = models.map(|models| models.len());
    match (key, models) {
        (Ok(KeyCheck::Refused), _) => check.problem(
            format!("{host} refuses the key in {variable}"),
            format!("set {variable} to a valid key"),
        ),
        (Ok(KeyCheck::Confirmed), Ok(count)) => check.ok(format!("{host} accepts the key; models: {count}")),
        (Ok(KeyCheck::AnyKey), Ok(count)) => {
            check.ok(format!("{host} answers, whatever the key; models: {count}"))
        }
        (Ok(_), Err(error)) => check.problem(error.to_string(), network_fix(provider)),
        // The key may be restricted to some models, or the provider is busy, so a run may still succeed.
        (Err(failure), Ok(_)) => {
            let fix =
                format!("try a run of one item, such as with --subset-count 1; {variable} may be restricted");
            check.warning(format!("{host} answers, but the key isn't confirmed: {}", failure.cause), fix)
        }
        (Err(failure), Err(_)) => check.problem(failure.cause, network_fix(provider)),
    }
}

async fn without_key(check: &Check, client: &ChatClient, endpoint: &Endpoint, host: &str) -> Finding {
    let provider = endpoint.provider();
    match client.list_gateway_models(endpoint).await {
        Ok(models) => check.ok(format!("{host} answers without a key; models: {}", models.len())),
        Err(_) if provider.is_local() && provider.default_base_url == Some(endpoint.base_url()) => {
            let fix = format!(
                "start it to use `{}/…` models, or set {}",
                provider.name, provider.base_url_variable
            );
            check.not_set_up(format!("nothing answers at {host}"), fix)
        }
        Err(error) => {
            let fix = format!(
                "check that the server runs, {}, and {} if it needs a key",
                provider.base_url_variable, provider.key_variable
            );
            check.problem(error.to_string(), fix)
        }
    }
}
