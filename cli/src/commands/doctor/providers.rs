//! Checks of providers: a key is set, and the provider answers and accepts it.

use std::time::Duration;

use bench_inference::catalog::CatalogError;
use bench_inference::{
    ChatClient, Endpoint, EndpointCheck, EndpointError, Failure, HttpOptions, InferenceConfig, KeyCheck,
    PROVIDERS, Provider,
};
use futures_util::future::join_all;

use super::Settings;
use super::finding::{Check, Finding, with_timeout};

/// Maximum time for all calls to a provider.
const LIMIT: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) async fn check(settings: &Settings) -> Vec<Finding> {
    let inference = match &settings.inference {
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
    join_all(PROVIDERS.iter().map(|provider| one(provider, inference, &client, settings.offline))).await
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
        Err(EndpointError::NoKey { .. }) => {
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
    let asked = with_timeout(LIMIT, async {
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

/// Explains what to do about a list of models that could not be read.
fn list_fix(provider: &Provider, error: &CatalogError) -> String {
    let variable = provider.base_url_variable;
    match error {
        CatalogError::Request(failure) => request_fix(provider, failure),
        _ => format!(
            "check that {variable} is the address of the API, without `/models` and usually with `/v1` at the end"
        ),
    }
}

/// Explains what to do about a request that failed.
fn request_fix(provider: &Provider, failure: &Failure) -> String {
    let variable = provider.base_url_variable;
    match failure.status {
        Some(300..=399) => {
            format!("set {variable} to the address that it redirects to, if you trust it with the key")
        }
        Some(500..) => "try again later: the provider answers, but reports an error of its own".to_owned(),
        Some(_) => format!("check {variable} and {}", provider.key_variable),
        None => network_fix(provider),
    }
}

fn network_fix(provider: &Provider) -> String {
    if provider.is_local() {
        return format!("check that the server runs, and {}", provider.base_url_variable);
    }
    format!("check the network, HTTPS_PROXY behind a proxy, and {}", provider.base_url_variable)
}

fn no_list(check: &Check, host: &str) -> Finding {
    let fix = "nothing, if a run of one item works (`--subset-count 1`); else check the base URL and the key";
    check.warning(format!("{host} lists no models; requests may still work"), fix)
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
    let EndpointCheck { models, key } =
        client.check_endpoint(endpoint, inference.account_url(provider)).await;
    match (key, models) {
        (Ok(Some(KeyCheck::Refused)), _) => check.problem(
            format!("{host} refuses the key in {variable}"),
            format!("set {variable} to a valid key"),
        ),
        (_, Ok(None)) => no_list(check, host),
        (Ok(Some(KeyCheck::AnyKey)), Ok(Some(count))) => {
            check.ok(format!("{host} accepts any key; models: {count}"))
        }
        (Ok(_), Ok(Some(count))) => check.ok(format!("{host} accepts the key; models: {count}")),
        // The key may be restricted to some models, or the provider is busy, so a run may still succeed.
        (Err(failure), Ok(Some(_))) => {
            let fix =
                format!("try a run of one item, such as with --subset-count 1; {variable} may be restricted");
            check.warning(format!("{host} answers, but the key isn't confirmed: {}", failure.cause), fix)
        }
        (_, Err(error)) => check.problem(cause(&error), list_fix(provider, &error)),
    }
}

async fn without_key(check: &Check, client: &ChatClient, endpoint: &Endpoint, host: &str) -> Finding {
    let provider = endpoint.provider();
    match client.count_models(endpoint).await {
        Ok(Some(count)) => check.ok(format!("{host} answers without a key; models: {count}")),
        Ok(None) => no_list(check, host),
        Err(CatalogError::Request(failure)) if matches!(failure.status, Some(401 | 403)) => check.problem(
            format!("{host} needs a key, and {} is not set", provider.key_variable),
            format!("set {} to a key of that server", provider.key_variable),
        ),
        Err(CatalogError::Request(Failure { status: None, .. }))
            if provider.is_local() && provider.default_base_url == Some(endpoint.base_url()) =>
        {
            let fix = format!(
                "start it to use `{}/…` models, or set {}",
                provider.name, provider.base_url_variable
            );
            check.not_set_up(format!("nothing answers at {host}"), fix)
        }
        Err(error) => check.problem(cause(&error), list_fix(provider, &error)),
    }
}

/// Describes an error without the words that say that a list was requested.
fn cause(error: &CatalogError) -> String {
    match error {
        CatalogError::Request(failure) => failure.cause.clone(),
        error => error.to_string(),
    }
}
