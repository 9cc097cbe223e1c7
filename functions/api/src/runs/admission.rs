//! Access to ordering: who orders, what the access policy says, and whether the caller's key is one.
//!
//! Every way of ordering over HTTP passes here: new runs, requeue, rejudge, schedules.

use std::time::{Duration, Instant};

use bench_domain::run::{ModelRef, Owner};
use bench_domain::{BenchmarkName, Code, Secret};
use bench_inference::{KeyCheck, ModelSource};
use bench_runs::{Orderer, Permissions, RunError, Standing};
use bench_state::access::{AccessEntry, AccessKind};
use bench_web::attempts::address_of;
use bench_web::auth::{judge_key, provider_key};
use bench_web::{ApiError, Caller};
use http::request::Parts;

use crate::Api;
use crate::context::held;
use crate::refusal::refusal;

/// Time for which a provider's confirmation of a key is good.
const CONFIRMED_FOR: Duration = Duration::from_secs(300);
/// Maximum number of confirmations that are kept.
const CONFIRMED_MAX: usize = 4_096;
/// Keys that a provider may refuse to confirm for one address in a minute.
const REFUSALS_PER_MINUTE: u32 = 10;
/// Reads who orders from a request: the holder of an access token, of a key, or of the admin secret, or the person at
/// this machine.
///
/// # Errors
/// 401 for strangers.
pub(crate) async fn orderer(api: &Api, parts: &Parts) -> Result<Orderer, ApiError> {
    let headers = &parts.headers;
    if api.config.server.local {
        return Ok(Orderer { judge_key: judge_key(headers)?, ..Orderer::local() });
    }
    match api.access.caller(headers)? {
        Caller::Admin | Caller::Local => {
            Ok(Orderer { judge_key: judge_key(headers)?, standing: Standing::Admin, ..Orderer::local() })
        }
        Caller::Key { owner, .. } => {
            let standing = standing_of(api, parts, &owner).await?;
            let (api_key, judge_key) = (provider_key(headers)?, judge_key(headers)?);
            Ok(Orderer { owner: Owner::Key(owner), api_key, judge_key, standing })
        }
        Caller::Anonymous => Err(ApiError::new(Code::MissingCredentials, "Missing Authorization header")),
    }
}

/// The standing of a request with a bearer text, whose keyed hash is `owner`.
pub(crate) async fn standing_of(api: &Api, parts: &Parts, owner: &str) -> Result<Standing, ApiError> {
    if api.config.server.local {
        return Ok(Standing::Local);
    }
    if let Some(entry) = parts.extensions.get::<AccessEntry>() {
        return Ok(Standing::Token(Permissions::of(entry)));
    }
    let listed = api.state.access(owner).await?;
    let listed = listed.filter(|entry| entry.kind == AccessKind::Key && entry.is_valid(bench_clock::now()));
    Ok(listed.map_or(Standing::Key, |entry| Standing::ListedKey(Permissions::of(&entry))))
}

/// Lets a caller order more of what is stored already: the same policy as for a new order. The caller counts it, as soon
/// as it is known to be valid.
///
/// # Errors
/// As [`orderer`] and [`admit`].
pub(crate) async fn admit_again(
    api: &Api,
    parts: &Parts,
    model: &ModelRef,
    benchmarks: &[BenchmarkName],
) -> Result<Orderer, ApiError> {
    let orderer = orderer(api, parts).await?;
    let source = ModelSource::from_name(&model.provider)
        .ok_or_else(|| ApiError::internal(format!("no provider {}", model.provider)))?;
    admit(api, parts, &orderer, Wanted { source, slug: &model.slug, benchmarks }).await?;
    Ok(orderer)
}

/// What a caller orders, as far as the access policy looks at it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) source: ModelSource,
    pub(crate) slug: &'a str,
    /// The benchmarks, as far as they are known already.
    pub(crate) benchmarks: &'a [BenchmarkName],
}

/// Lets an order pass that the access policy allows its caller, whose key the provider confirms where it is one.
///
/// # Errors
/// 403 for what the caller may not order and for a key that the provider refuses, 429 for an address with too many
/// such keys, 503 when the provider cannot be asked.
pub(crate) async fn admit(
    api: &Api,
    parts: &Parts,
    orderer: &Orderer,
    wanted: Wanted<'_>,
) -> Result<(), ApiError> {
    let policy = &api.config.runs.policy;
    let checked = orderer.standing.check_access(policy, wanted.source, wanted.benchmarks);
    checked.map_err(|refused| refusal(refused.into()))?;
    if policy.local {
        return Ok(());
    }
    match &orderer.api_key {
        Some(key) if orderer.standing == Standing::Key => confirm(api, parts, orderer, key, wanted).await,
        _ => Ok(()),
    }
}

/// Asks the key's provider whether it knows the key. A confirmation is good for five minutes; refusals are not kept,
/// but bounded for each address. Each question counts as a refusal until it is answered, so that many at once are no more
/// than many in turn.
async fn confirm(
    api: &Api,
    parts: &Parts,
    orderer: &Orderer,
    key: &Secret,
    wanted: Wanted<'_>,
) -> Result<(), ApiError> {
    let ModelSource::Provider(provider) = wanted.source else { return Ok(()) };
    let holder = (provider, api.access.owner_key.owner_of(key));
    let is_confirmed = || {
        held(&api.confirmations.confirmed).get(&holder).is_some_and(|since| since.elapsed() < CONFIRMED_FOR)
    };
    if is_confirmed() {
        return Ok(());
    }
    let name = provider.display_name;
    let endpoint = api.orders.endpoint(provider, Some(orderer));
    let endpoint = endpoint.map_err(|error| refusal(RunError::ModelCannotBeAsked(error)))?;
    let unreachable = || {
        let detail =
            format!("The API key could not be confirmed: {name} did not answer as expected; try again.");
        ApiError::new(Code::ProviderUnreachable, detail).after(Duration::from_secs(10))
    };
    let wait = api.config.confirmation_wait;
    let Ok(permit) = tokio::time::timeout(wait, api.confirmations.asking.acquire()).await else {
        return Err(unreachable());
    };
    let _permit = permit.map_err(ApiError::internal)?;
    // Another order with the same key may have been faster.
    if is_confirmed() {
        return Ok(());
    }
    let address = address_of(parts);
    api.confirmations.refused.note(&address, REFUSALS_PER_MINUTE).map_err(|wait| {
        ApiError::new(Code::TooManyAttempts, "Too many keys that no provider confirms; try again later.")
            .after(wait)
    })?;
    let account = api.config.runs.inference.account_url(provider);
    let asked = api.orders.chat.confirm_key(&endpoint, account, wanted.slug);
    let found = match tokio::time::timeout(wait, asked).await {
        Ok(Ok(found)) => found,
        Ok(Err(failure)) => {
            tracing::warn!(%provider, error = %failure.cause, "A key could not be confirmed");
            return Err(unreachable());
        }
        Err(_) => return Err(unreachable()),
    };
    match found {
        KeyCheck::Confirmed => {
            api.confirmations.refused.take_back(&address);
            let mut confirmed = held(&api.confirmations.confirmed);
            if confirmed.len() >= CONFIRMED_MAX {
                confirmed.clear();
            }
            confirmed.insert(holder, Instant::now());
            Ok(())
        }
        KeyCheck::Refused => Err(ApiError::new(
            Code::InvalidKey,
            match provider.refused_key {
                Some(sentence) => sentence.to_owned(),
                None => format!("The API key is refused by its provider, {name}."),
            },
        )),
        KeyCheck::AnyKey => Err(ApiError::new(
            Code::KeyNotConfirmable,
            format!(
                "The API key cannot be confirmed: {name} accepts any key. Order with an access token of this server's \
                 operator."
            ),
        )),
    }
}
