//! Admission of orders: identifies who orders, applies the access policy, and confirms the caller's key.
//!
//! All orders over HTTP are checked here: new runs, requeue, rejudge, schedules.

use std::time::{Duration, Instant};

use bench_domain::run::Owner;
use bench_domain::{BenchmarkName, Code, RunSpec, Secret};
use bench_inference::{KeyCheck, ModelSource};
use bench_runs::{Orderer, Permissions, RunError, Standing, UserStanding};
use bench_state::access::AccessKind;
use bench_web::attempts::caller_address;
use bench_web::auth::{judge_key, provider_key, user_key};
use bench_web::{ApiError, Caller, Identity};
use http::request::Parts;

use crate::Api;
use crate::context::lock;
use crate::refusal::refusal;

/// Time for which a provider's confirmation of a key is valid.
const CONFIRMED_FOR: Duration = Duration::from_secs(300);
/// Maximum number of cached confirmations.
const CONFIRMED_MAX: usize = 4_096;
/// Maximum number of unconfirmed keys from one address per minute.
const REFUSALS_PER_MINUTE: u32 = 10;

/// Identifies who orders: the holder of an access token, of a key or of the admin secret, a signed-in user, or the person at
/// this machine.
///
/// # Errors
/// 401 for callers without any of them.
pub(crate) async fn orderer(api: &Api, parts: &Parts) -> Result<Orderer, ApiError> {
    let headers = &parts.headers;
    let (judge_key, user_key) = (judge_key(headers)?, user_key(headers)?);
    let identity = Identity::of(parts);
    let caller = match identity.reader() {
        user @ Caller::User { .. } => user,
        // On this machine, the person orders, whichever key is sent.
        _ if api.config.server.local => &Caller::Local,
        _ => identity.caller()?,
    };
    let Some(standing) = standing_of_caller(api, parts, caller).await? else {
        return Err(ApiError::new(Code::MissingCredentials, "Missing Authorization header"));
    };
    let orderer = Orderer { judge_key, user_key, standing, ..Orderer::local() };
    Ok(match caller {
        Caller::Key { owner, .. } => {
            Orderer { owner: Owner::Key(owner.clone()), api_key: provider_key(headers)?, ..orderer }
        }
        Caller::User { subject, session, has_invoke_scope, .. } => {
            let session = has_invoke_scope.then(|| session.clone());
            Orderer { owner: Owner::User(subject.clone()), session, ..orderer }
        }
        Caller::Admin | Caller::Local | Caller::Anonymous => orderer,
    })
}

/// Returns the standing of a request's caller; `None` for callers without credentials.
///
/// # Errors
/// When the operator's list of callers can't be read.
pub(crate) async fn standing_of_caller(
    api: &Api,
    parts: &Parts,
    caller: &Caller,
) -> Result<Option<Standing>, ApiError> {
    let is_local = api.config.server.local;
    Ok(match caller {
        Caller::User { subject, has_invoke_scope, is_admin, .. } => Some(match is_admin {
            true => Standing::Admin,
            false => Standing::User(UserStanding {
                permissions: user_permissions(api, subject).await?,
                has_invoke_scope: *has_invoke_scope,
                operator_pays: api.config.runs.policy.operator_pays_for_users,
            }),
        }),
        _ if is_local => Some(Standing::Local),
        Caller::Admin | Caller::Local => Some(Standing::Admin),
        Caller::Key { owner, .. } => Some(standing_of(api, parts, owner).await?),
        Caller::Anonymous => None,
    })
}

/// Returns the permissions of a signed-in user: all on this machine, otherwise those that the operator gave.
async fn user_permissions(api: &Api, subject: &str) -> Result<Permissions, ApiError> {
    if api.config.server.local {
        return Ok(Permissions { oracle: true, gated: true, tasks: true });
    }
    let listed = api.state.access_of_user(subject, bench_clock::now()).await?;
    Ok(listed.as_ref().map(Permissions::from_entry).unwrap_or_default())
}

/// Returns the access rights of a request with a bearer token. `owner` is the token's keyed hash.
pub(crate) async fn standing_of(api: &Api, parts: &Parts, owner: &str) -> Result<Standing, ApiError> {
    if api.config.server.local {
        return Ok(Standing::Local);
    }
    if let Some(entry) = Identity::of(parts).entry() {
        return Ok(Standing::Token(Permissions::from_entry(entry)));
    }
    let listed = api.state.access(owner).await?;
    let listed = listed.filter(|entry| entry.kind == AccessKind::Key && entry.is_valid(bench_clock::now()));
    Ok(listed.map_or(Standing::Key, |entry| Standing::ListedKey(Permissions::from_entry(&entry))))
}

/// Admits an order that continues or repeats a stored run, under the same policy as a new order: its models are paid for
/// as they were, so that must still be allowed. The caller counts the order once it is known to be valid.
///
/// # Errors
/// Those of [`orderer`] and [`admit`]; 403 if the operator's key no longer pays.
pub(crate) async fn admit_stored_run(api: &Api, parts: &Parts, spec: &RunSpec) -> Result<Orderer, ApiError> {
    let orderer = admit_rejudge(api, parts, spec).await?;
    let checked = orderer.standing.check_payers(spec, api.config.runs.judge_model.as_ref());
    checked.map_err(|refused| refusal(refused.into()))?;
    Ok(orderer)
}

/// Admits an order to judge the answers of a stored run again, which doesn't ask the run's own models.
///
/// # Errors
/// Those of [`orderer`] and [`admit`].
pub(crate) async fn admit_rejudge(api: &Api, parts: &Parts, spec: &RunSpec) -> Result<Orderer, ApiError> {
    let orderer = orderer(api, parts).await?;
    let (model, benchmarks) = (&spec.model, &spec.benchmarks);
    let source = ModelSource::from_name(&model.provider)
        .ok_or_else(|| ApiError::internal(format!("no provider {}", model.provider)))?;
    admit(api, parts, &orderer, OrderScope { source, slug: &model.slug, benchmarks }).await?;
    Ok(orderer)
}

/// Parts of an order that the access policy checks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OrderScope<'a> {
    pub(crate) source: ModelSource,
    pub(crate) slug: &'a str,
    /// The ordered benchmarks that are known so far.
    pub(crate) benchmarks: &'a [BenchmarkName],
}

/// Admits an order if the access policy allows it to its caller. For a provider's key, the provider must also
/// confirm the key.
///
/// # Errors
/// 403 for orders that the caller may not make and for a key that the provider refuses, 429 for an address
/// with too many refused keys, 503 when the provider can't be reached.
pub(crate) async fn admit(
    api: &Api,
    parts: &Parts,
    orderer: &Orderer,
    scope: OrderScope<'_>,
) -> Result<(), ApiError> {
    let policy = &api.config.runs.policy;
    let checked = orderer.standing.check_access(policy, scope.source, scope.benchmarks);
    checked.map_err(|refused| refusal(refused.into()))?;
    if policy.local {
        return Ok(());
    }
    match &orderer.api_key {
        Some(key) if orderer.standing == Standing::Key => confirm(api, parts, orderer, key, scope).await,
        _ => Ok(()),
    }
}

/// Asks the provider to confirm the key. Confirmations are cached for five minutes; refusals aren't cached,
/// but limited per address. Each pending request counts as a refusal until it is answered, so parallel
/// guesses get no more tries than sequential ones.
async fn confirm(
    api: &Api,
    parts: &Parts,
    orderer: &Orderer,
    key: &Secret,
    scope: OrderScope<'_>,
) -> Result<(), ApiError> {
    let ModelSource::Provider(provider) = scope.source else { return Ok(()) };
    let holder = (provider, api.access.owner_key.owner_of(key));
    let is_confirmed = || {
        lock(&api.confirmations.confirmed).get(&holder).is_some_and(|since| since.elapsed() < CONFIRMED_FOR)
    };
    if is_confirmed() {
        return Ok(());
    }
    let name = provider.display_name;
    let endpoint = api.orders.endpoint(provider, Some(orderer));
    let endpoint = endpoint.map_err(|error| refusal(RunError::ModelCannotBeAsked(error)))?;
    let unreachable = || {
        let detail = format!(
            "the API key could not be confirmed because {name} did not answer as expected; try again"
        );
        ApiError::new(Code::ProviderUnreachable, detail).after(Duration::from_secs(10))
    };
    let wait = api.config.confirmation_wait;
    let Ok(permit) = tokio::time::timeout(wait, api.confirmations.asking.acquire()).await else {
        return Err(unreachable());
    };
    let _permit = permit.map_err(ApiError::internal)?;
    // A concurrent order with the same key may have confirmed it.
    if is_confirmed() {
        return Ok(());
    }
    let address = caller_address(parts);
    api.confirmations.refused.count(&address, REFUSALS_PER_MINUTE).map_err(|wait| {
        ApiError::new(Code::TooManyAttempts, "too many keys that their provider refused; try again later")
            .after(wait)
    })?;
    let account = api.config.runs.inference.account_url(provider);
    let asked = api.orders.chat.confirm_key(&endpoint, account, scope.slug);
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
            api.confirmations.refused.uncount(&address);
            let mut confirmed = lock(&api.confirmations.confirmed);
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
                None => format!("{name} refuses the API key; check the key and its account"),
            },
        )),
        KeyCheck::AnyKey => Err(ApiError::new(
            Code::KeyNotConfirmable,
            format!(
                "the API key can't be confirmed because {name} accepts any key; order with an access token from this \
                 server's operator"
            ),
        )),
    }
}
