//! Access to ordering: the caller's standing, the access policy, and the limits of orders.
//!
//! Every way of ordering passes here: new runs, requeue, rejudge, schedules.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use bench_benchmarks::Benchmark;
use bench_domain::run::{DatasetChoice, ModelRef, Owner};
use bench_domain::schedule::RunTemplate;
use bench_domain::{BenchmarkName, Code, Secret, Timestamp};
use bench_inference::{KeyCheck, ProviderKind};
use bench_state::access::{AccessEntry, AccessKind, AccessRow, OrderLimits, Reached};
use bench_web::attempts::address_of;
use bench_web::auth::{judge_key, provider_key};
use bench_web::{ApiError, Caller};
use http::request::Parts;

use crate::context::held;
use crate::lookup::endpoint;
use crate::{Api, Orderer};

/// Time for which a provider's confirmation of a key is good.
const CONFIRMED_FOR: Duration = Duration::from_secs(300);
/// Maximum number of confirmations that are kept.
const CONFIRMED_MAX: usize = 4_096;
/// Keys that a provider may refuse to confirm for one address in a minute.
const REFUSALS_PER_MINUTE: u32 = 10;
/// Keys that providers are asked about at the same time.
pub(crate) const CONFIRMING_MAX: usize = 8;
/// Wait that callers are told when a limit of open runs is reached.
const OPEN_RUNS_WAIT: Duration = Duration::from_secs(60);

/// Confirmed keys, by provider and keyed hash.
pub(crate) type Confirmed = HashMap<(ProviderKind, String), Instant>;

/// What the server knows of the caller who orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The person at this machine, or this program itself.
    Local,
    /// A holder of the admin secret.
    Admin,
    /// A holder of an access token.
    Token(Permissions),
    /// A holder of a key that the operator has listed.
    ListedKey(Permissions),
    /// A holder of some text that may be a key: its provider has to confirm it.
    Key,
}

/// Permissions of a listed caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Permissions {
    /// May order runs of the oracle and of stored responses.
    pub oracle: bool,
    /// May order runs of gated benchmarks.
    pub gated: bool,
}

impl Permissions {
    const fn of(entry: &AccessEntry) -> Self {
        Self { oracle: entry.oracle, gated: entry.gated }
    }
}

impl Standing {
    const fn permissions(self) -> Permissions {
        match self {
            Self::Local | Self::Admin => Permissions { oracle: true, gated: true },
            Self::Token(permissions) | Self::ListedKey(permissions) => permissions,
            Self::Key => Permissions { oracle: false, gated: false },
        }
    }

    /// Whether orders may be paid with the operator's keys.
    pub(crate) const fn spends_operators_money(self) -> bool {
        matches!(self, Self::Local | Self::Admin | Self::Token(_))
    }

    const fn row(self) -> Option<AccessRow> {
        match self {
            Self::Local => None,
            Self::Admin => Some(AccessRow::Admin),
            Self::Token(_) => Some(AccessRow::Token),
            Self::ListedKey(_) | Self::Key => Some(AccessRow::ProviderKey),
        }
    }
}

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
    let listed = listed.filter(|entry| entry.kind == AccessKind::Key && entry.is_valid(Timestamp::now()));
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
    let kind = ProviderKind::from_name(&model.provider)
        .ok_or_else(|| ApiError::internal(format!("no provider {}", model.provider)))?;
    admit(api, parts, &orderer, Wanted { kind, slug: &model.slug, benchmarks }).await?;
    Ok(orderer)
}

/// What a caller orders, as far as the access policy looks at it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) kind: ProviderKind,
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
    let policy = &api.config.policy;
    if policy.local {
        return Ok(());
    }
    if let Some(row) = orderer.standing.row().filter(|row| !policy.has(*row)) {
        let who = match row {
            AccessRow::Admin => "the admin secret",
            AccessRow::Token => "an access token",
            AccessRow::ProviderKey => "a provider's key",
        };
        return Err(ApiError::new(
            Code::OrderNotAllowed,
            format!("This server takes no orders from callers with {who}; its access policy is: {policy}."),
        ));
    }
    if !wanted.kind.is_remote() && !orderer.standing.permissions().oracle {
        return Err(ApiError::new(
            Code::OrderNotAllowed,
            format!("Runs of {} are for admins and listed callers on this server.", wanted.kind),
        ));
    }
    refuse_gated(orderer, wanted.benchmarks)?;
    match &orderer.api_key {
        Some(key) if orderer.standing == Standing::Key => confirm(api, parts, orderer, key, wanted).await,
        _ => Ok(()),
    }
}

/// Refuses gated benchmarks to callers who may not order them.
///
/// # Errors
/// 403 with the benchmark's name.
pub(crate) fn refuse_gated(orderer: &Orderer, benchmarks: &[BenchmarkName]) -> Result<(), ApiError> {
    match benchmarks.iter().find(|name| !may_order(orderer, name)) {
        Some(name) => Err(ApiError::new(
            Code::GatedBenchmark,
            format!(
                "The dataset of {name} is gated: runs of it are for admins and listed callers on this server."
            ),
        )),
        None => Ok(()),
    }
}

/// Returns whether this caller may order a benchmark, gated or not.
pub(crate) fn may_order(orderer: &Orderer, name: &BenchmarkName) -> bool {
    orderer.standing.permissions().gated
        || bench_benchmarks::find(name.as_str()).is_none_or(|benchmark| benchmark.spec().gate.is_none())
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
    let holder = (wanted.kind, api.access.owner_key.owner_of(key));
    let is_confirmed =
        || held(&api.confirmed).get(&holder).is_some_and(|since| since.elapsed() < CONFIRMED_FOR);
    if is_confirmed() {
        return Ok(());
    }
    let name = wanted.kind.display_name();
    let endpoint = endpoint(api, wanted.kind, Some(orderer)).map_err(|error| {
        ApiError::new(Code::ProviderNotConfigured, format!("This model cannot be asked: {error}."))
    })?;
    let unreachable = || {
        let detail =
            format!("The API key could not be confirmed: {name} did not answer as expected; try again.");
        ApiError::new(Code::ProviderUnreachable, detail).after(Duration::from_secs(10))
    };
    let wait = api.config.confirmation_wait;
    let Ok(permit) = tokio::time::timeout(wait, api.confirming.acquire()).await else {
        return Err(unreachable());
    };
    let _permit = permit.map_err(ApiError::internal)?;
    // Another order with the same key may have been faster.
    if is_confirmed() {
        return Ok(());
    }
    let address = address_of(parts);
    api.refused_keys.note(&address, REFUSALS_PER_MINUTE).map_err(|wait| {
        ApiError::new(Code::TooManyAttempts, "Too many keys that no provider confirms; try again later.")
            .after(wait)
    })?;
    let account = api.config.inference.account_url(wanted.kind);
    let asked = api.chat.confirm_key(&endpoint, account, wanted.slug);
    let found = match tokio::time::timeout(wait, asked).await {
        Ok(Ok(found)) => found,
        Ok(Err(failure)) => {
            tracing::warn!(provider = %wanted.kind, error = %failure.cause, "A key could not be confirmed");
            return Err(unreachable());
        }
        Err(_) => return Err(unreachable()),
    };
    match found {
        KeyCheck::Confirmed => {
            api.refused_keys.take_back(&address);
            let mut confirmed = held(&api.confirmed);
            if confirmed.len() >= CONFIRMED_MAX {
                confirmed.clear();
            }
            confirmed.insert(holder, Instant::now());
            Ok(())
        }
        KeyCheck::Refused => Err(ApiError::new(
            Code::InvalidKey,
            match wanted.kind {
                // As the compatible system says it.
                ProviderKind::Chutes => "Chutes API key is not authorized for this model.".to_owned(),
                _ => format!("The API key is refused by its provider, {name}."),
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

/// The limits of orders of this owner.
pub(crate) fn limits(api: &Api, owner: &Owner) -> OrderLimits {
    api.config.limits.of(owner, api.config.server.local)
}

/// Counts an order in this minute.
///
/// # Errors
/// 429 when its owner, or all owners together, ordered too often.
pub(crate) async fn count_order(api: &Api, owner: &Owner) -> Result<(), ApiError> {
    let (limits, now) = (limits(api, owner), Timestamp::now());
    let detail = match api.state.count_order(owner, &limits, now).await? {
        None => return Ok(()),
        Some(Reached::Owner) => format!(
            "You placed {} orders in this minute, as many as one caller may place.",
            limits.orders_per_minute_per_owner
        ),
        Some(Reached::Total) => {
            format!(
                "This server took {} orders in this minute, as many as it takes.",
                limits.orders_per_minute
            )
        }
    };
    let second = now.as_seconds().rem_euclid(60);
    let wait = Duration::from_secs(u64::try_from(60 - second).unwrap_or(60));
    Err(ApiError::new(Code::OrderRateLimit, detail).after(wait))
}

/// The refusal of an order that reached a limit of open runs.
pub(crate) fn too_many_open(api: &Api, owner: &Owner, reached: Reached) -> ApiError {
    let limits = limits(api, owner);
    let detail = match reached {
        Reached::Owner => format!(
            "You have {} open runs, as many as one caller may have: wait until one is over, or cancel one.",
            limits.open_runs_per_owner
        ),
        Reached::Total => {
            format!("This server has {} open runs, as many as it takes; try again later.", limits.open_runs)
        }
    };
    ApiError::new(Code::OpenRunsLimit, detail).after(OPEN_RUNS_WAIT)
}

/// Refuses an order with more samples than its owner may plan in one, as far as the sizes of its datasets are known.
/// The planner looks again when it has them.
///
/// # Errors
/// 422 with both numbers.
pub(crate) fn check_samples(api: &Api, owner: &Owner, template: &RunTemplate) -> Result<(), ApiError> {
    let limit = limits(api, owner).samples_per_order;
    let planned = template.benchmarks.iter().map(|name| known_samples(template, name));
    let planned = planned.fold(0_u64, u64::saturating_add);
    refuse_samples(planned, limit)
}

/// Refuses so many samples if the limit is below.
pub(crate) fn refuse_samples(planned: u64, limit: u64) -> Result<(), ApiError> {
    if planned <= limit {
        return Ok(());
    }
    Err(ApiError::new(
        Code::SamplesLimit,
        format!(
            "This order has {planned} samples, and the server takes {limit} in one order: choose fewer benchmarks, fewer \
         items (subset_count, subset_pct) or fewer samples of each (samples)."
        ),
    ))
}

/// Samples of a benchmark, 0 where the size of its dataset is not known.
fn known_samples(template: &RunTemplate, name: &BenchmarkName) -> u64 {
    let Some(benchmark) = bench_benchmarks::find(name.as_str()) else { return 0 };
    let protocol = template.protocols.get(name).map(String::as_str);
    let benchmark = bench_benchmarks::under_protocol(benchmark, protocol).unwrap_or(benchmark);
    let each = u64::from(template.samples.unwrap_or(benchmark.facts().samples_per_item));
    let items = if template.items.is_empty() {
        let size = usize::try_from(dataset_items(benchmark, template, name)).unwrap_or(usize::MAX);
        template.subset.size(size) as u64
    } else {
        template.items.len() as u64
    };
    items.saturating_mul(each)
}

fn dataset_items(benchmark: &dyn Benchmark, template: &RunTemplate, name: &BenchmarkName) -> u64 {
    // Options may leave out a part of it.
    if template.options.contains_key(name) {
        return 0;
    }
    match template.datasets.get(name) {
        None | Some(DatasetChoice::Hub) => benchmark.spec().items,
        Some(DatasetChoice::Demo) => demo_items(benchmark),
        Some(DatasetChoice::Local { .. }) => 0,
    }
}

fn demo_items(benchmark: &dyn Benchmark) -> u64 {
    benchmark.spec().demo.items.lines().filter(|line| !line.trim().is_empty()).count() as u64
}
