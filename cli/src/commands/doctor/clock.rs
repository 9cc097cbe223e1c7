//! The machine's clock, compared with the `Date` header of a server.

use std::time::Duration;

use bench_inference::{PROVIDERS, http_client_for};
use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};
use reqwest::header::{AGE, DATE, HeaderMap};
use reqwest::{Client, Url};

use super::Settings;
use super::finding::{Check, Finding};
use super::hub;
use crate::format;

/// Maximum time for a server to answer.
const LIMIT: Duration = Duration::from_secs(5);
/// Minimum difference at which AWS rejects signed requests.
const REFUSED_FROM: SignedDuration = SignedDuration::from_mins(5);
/// Difference that network latency and the whole seconds of `Date` don't explain.
const NOTICED_FROM: SignedDuration = SignedDuration::from_secs(10);
/// Precision of the comparison.
const MEASURED_FROM: SignedDuration = SignedDuration::from_secs(2);

/// Offset of this machine's clock from a server's; positive if it is ahead.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Offset {
    host: String,
    ahead: SignedDuration,
}

pub(super) async fn check(settings: &Settings) -> Vec<Finding> {
    let check = Check::new("clock", "clock");
    if settings.offline {
        return vec![check.skipped("no server was asked")];
    }
    let addresses = addresses(settings);
    if addresses.is_empty() {
        return vec![check.skipped("no server to compare with: the hub is off, and no provider has a key")];
    }
    let offsets = join_all(addresses.into_iter().map(measure)).await;
    match offsets.into_iter().flatten().next() {
        Some(offset) => vec![finding(&check, &offset)],
        None => vec![check.skipped("no server with a clock could be reached")],
    }
}

/// Returns the servers that other checks call anyway: the hub, and providers whose keys are set. Leaves out providers
/// on this machine, since they share its clock.
fn addresses(settings: &Settings) -> Vec<Url> {
    let hub = hub::config(settings).ok().filter(|config| !config.offline).map(|config| config.hub_url);
    let inference = settings.inference.as_ref().ok();
    let providers = PROVIDERS.iter().filter(|provider| !provider.is_local()).filter_map(|provider| {
        let config = inference?.provider(provider)?;
        config.key.as_ref()?;
        config.base_url.clone()
    });
    hub.into_iter().chain(providers).filter_map(|address| Url::parse(&address).ok()).collect()
}

async fn measure(address: Url) -> Option<Offset> {
    let client: Client = http_client_for(&address, |builder| builder.timeout(LIMIT)).ok()?;
    let host = hub::host(address.as_str());
    let asked = Timestamp::now();
    let answer = client.head(address).send().await.ok()?;
    let answered = Timestamp::now();
    let here = asked + answered.duration_since(asked) / 2;
    Some(Offset { host, ahead: here.duration_since(server_time(answer.headers())?) })
}

/// Parses the time at which a server answered. A cached response is older than its `Date` by its `Age`.
fn server_time(headers: &HeaderMap) -> Option<Timestamp> {
    let date = jiff::fmt::rfc2822::parse(headers.get(DATE)?.to_str().ok()?).ok()?.timestamp();
    let age = headers.get(AGE).and_then(|age| age.to_str().ok()?.trim().parse::<u32>().ok()).unwrap_or(0);
    date.checked_add(SignedDuration::from_secs(age.into())).ok()
}

fn finding(check: &Check, offset: &Offset) -> Finding {
    let (host, by) = (&offset.host, offset.ahead.abs());
    if by < MEASURED_FROM {
        return check.ok(format!("within 2 s of {host}"));
    }
    let direction = if offset.ahead.is_positive() { "ahead of" } else { "behind" };
    let fact = format!("{} {direction} {host}", format::seconds(by.as_secs_f64()));
    let set = "set it by NTP, such as with `sudo timedatectl set-ntp true`";
    if by > REFUSED_FROM {
        let why = "signed requests are refused beyond 5 minutes, and archives get wrong times";
        check.problem(fact, format!("{set}: {why}"))
    } else if by >= NOTICED_FROM {
        check.warning(fact, set)
    } else {
        check.ok(fact)
    }
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;
    use crate::commands::doctor::finding::Status;

    #[test]
    fn the_time_of_an_answer_is_its_date_and_its_age() {
        let time = |date: &'static str, age: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            headers.insert(DATE, HeaderValue::from_static(date));
            headers.extend(age.map(|age| (AGE, HeaderValue::from_static(age))));
            server_time(&headers).map(|time| time.to_string())
        };
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        assert_eq!(time(date, None).as_deref(), Some("1994-11-06T08:49:37Z"));
        assert_eq!(time(date, Some("90")).as_deref(), Some("1994-11-06T08:51:07Z"));
        assert_eq!(time(date, Some("old")).as_deref(), Some("1994-11-06T08:49:37Z"));
        assert_eq!(time("yesterday", None), None);
        assert_eq!(server_time(&HeaderMap::new()), None);
    }

    #[test]
    fn only_a_clock_that_is_minutes_off_is_a_problem() {
        for (seconds, status, fact) in [
            (0, Status::Ok, "within 2 s of hub.example"),
            (-3, Status::Ok, "3 s behind hub.example"),
            (-10, Status::Warning, "10 s behind hub.example"),
            (300, Status::Warning, "5 m 0 s ahead of hub.example"),
            (301, Status::Problem, "5 m 1 s ahead of hub.example"),
            (-90_000, Status::Problem, "1 d 1 h behind hub.example"),
        ] {
            let offset = Offset { host: "hub.example".into(), ahead: SignedDuration::from_secs(seconds) };
            let finding = finding(&Check::new("clock", "clock"), &offset);
            assert_eq!((finding.status, finding.fact.as_str()), (status, fact));
        }
    }

    #[test]
    fn only_servers_that_may_be_asked_are_compared_with() {
        let addresses = |vars: &[(&str, &str)]| {
            let vars = vars.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            let settings = Settings::new(vars.collect(), false);
            addresses(&settings).iter().map(|url| hub::host(url.as_str())).collect::<Vec<_>>()
        };
        assert_eq!(addresses(&[]), ["huggingface.co"]);
        assert_eq!(addresses(&[("HF_HUB_OFFLINE", "1")]), <[&str; 0]>::default());
        let with_key = [("HF_HUB_OFFLINE", "1"), ("OPENROUTER_API_KEY", "k"), ("LMSTUDIO_API_KEY", "k")];
        assert_eq!(addresses(&with_key), ["openrouter.ai"]);
    }
}
