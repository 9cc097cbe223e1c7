//! Deterministic faults between the program and the services, for tests of its invariants.
//!
//! Rules have a compact text form that fits into one option or variable:
//!
//! ```text
//! seed=7,conflict=0.05,throttle@PutItem=0.5x3,lost-response=0.03,duplicate=1.0,lose=1
//! ```
//!
//! Each rule is `kind[@target]=probability[xlimit]`. The target is an action (`PutItem`), or a table, queue or bucket;
//! without one, the rule applies to all matching calls. The limit is the maximum number of injections. A whole number
//! of at least 1 without a decimal point is a limit with probability 1: `lose=1` loses the first message. Injections
//! depend on the seed and on the number of decisions of the rule, not on time or threads: the same sequence of calls
//! has the same faults.

mod responses;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(crate) use responses::{conflict, denied, throttled};

/// Kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FaultKind {
    /// DynamoDB: a transaction is canceled, or a single write refused, because of a conflict with another transaction.
    /// Nothing is written.
    Conflict,
    /// Any service: too many requests. The call isn't executed.
    Throttle,
    /// Any service: the caller's role lacks the permission. The call isn't executed.
    Deny,
    /// DynamoDB batches: a random part is processed, the rest is returned as unprocessed.
    Unprocessed,
    /// Any service: the call is executed, but the caller gets a broken connection.
    LostResponse,
    /// SQS: a message is stored and delivered twice.
    Duplicate,
    /// SQS: a send is acknowledged but the message is lost.
    Lose,
}

impl FaultKind {
    const ALL: [Self; 7] = [
        Self::Conflict,
        Self::Throttle,
        Self::Deny,
        Self::Unprocessed,
        Self::LostResponse,
        Self::Duplicate,
        Self::Lose,
    ];

    /// Returns the name in the text form.
    pub fn name(self) -> &'static str {
        match self {
            Self::Conflict => "conflict",
            Self::Throttle => "throttle",
            Self::Deny => "deny",
            Self::Unprocessed => "unprocessed",
            Self::LostResponse => "lost-response",
            Self::Duplicate => "duplicate",
            Self::Lose => "lose",
        }
    }
}

/// A fault rule.
#[derive(Debug, Clone, PartialEq)]
pub struct FaultRule {
    /// Kind of the fault.
    pub kind: FaultKind,
    /// Action or resource that the rule is limited to.
    pub target: Option<String>,
    /// Probability from 0 to 1, per call (per message for `Duplicate` and `Lose`, per item for the parts of a batch).
    pub probability: f64,
    /// Maximum number of injections.
    pub limit: Option<u64>,
}

/// A set of rules with a seed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Faults {
    /// Seed. Two runs with the same seed and the same calls have the same faults.
    pub seed: u64,
    /// The rules, in the order of evaluation.
    pub rules: Vec<FaultRule>,
}

/// The text isn't a valid set of fault rules.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{part}` is not a fault rule: {reason}")]
pub struct FaultsError {
    part: String,
    reason: &'static str,
}

impl FromStr for Faults {
    type Err = FaultsError;

    fn from_str(text: &str) -> Result<Self, FaultsError> {
        let mut faults = Self::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let error = |reason| FaultsError { part: part.to_owned(), reason };
            let (key, value) = part.split_once('=').ok_or_else(|| error("it needs a `=`"))?;
            if key == "seed" {
                faults.seed = value.parse().map_err(|_| error("the seed is not a whole number"))?;
            } else {
                faults.rules.push(parse_rule(key, value).map_err(error)?);
            }
        }
        Ok(faults)
    }
}

fn parse_rule(key: &str, value: &str) -> Result<FaultRule, &'static str> {
    let (name, target) = match key.split_once('@') {
        Some((_, "")) => return Err("nothing follows the `@`"),
        Some((name, target)) => (name, Some(target.to_owned())),
        None => (key, None),
    };
    let kind = FaultKind::ALL.into_iter().find(|kind| kind.name() == name).ok_or("unknown fault")?;
    if let Ok(limit @ 1..) = value.parse::<u64>() {
        return Ok(FaultRule { kind, target, probability: 1.0, limit: Some(limit) });
    }
    let (probability, limit) = match value.split_once('x') {
        Some((probability, limit)) => {
            (probability, Some(limit.parse().map_err(|_| "the limit is not a whole number")?))
        }
        None => (value, None),
    };
    match probability.parse::<f64>() {
        Ok(probability) if (0.0..=1.0).contains(&probability) => {
            Ok(FaultRule { kind, target, probability, limit })
        }
        _ => Err("the probability is not a number from 0 to 1"),
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed={}", self.seed)?;
        for rule in &self.rules {
            write!(f, ",{}", rule.kind.name())?;
            if let Some(target) = &rule.target {
                write!(f, "@{target}")?;
            }
            // `{:?}` keeps the decimal point, which distinguishes a probability from a limit.
            write!(f, "={:?}", rule.probability)?;
            if let Some(limit) = rule.limit {
                write!(f, "x{limit}")?;
            }
        }
        Ok(())
    }
}

impl Serialize for Faults {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Faults {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Number of injections of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FaultCounts([u64; FaultKind::ALL.len()]);

impl FaultCounts {
    /// Returns the number of injections of one kind.
    pub fn count(&self, kind: FaultKind) -> u64 {
        FaultKind::ALL.iter().zip(self.0).filter(|(k, _)| **k == kind).map(|(_, count)| count).sum()
    }

    /// Returns the kinds that were injected, by name.
    pub fn by_name(&self) -> BTreeMap<&'static str, u64> {
        let all = FaultKind::ALL.iter().zip(self.0);
        all.filter(|(_, count)| *count > 0).map(|(kind, count)| (kind.name(), count)).collect()
    }
}

/// Evaluates rules. Clones share the counters.
#[derive(Debug, Clone)]
pub(crate) struct Injector(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    seed: u64,
    rules: Vec<ActiveRule>,
}

#[derive(Debug)]
struct ActiveRule {
    rule: FaultRule,
    decisions: AtomicU64,
    injected: AtomicU64,
}

impl Injector {
    pub(crate) fn new(faults: Faults) -> Self {
        let activate = |rule| ActiveRule { rule, decisions: AtomicU64::new(0), injected: AtomicU64::new(0) };
        Self(Arc::new(Inner { seed: faults.seed, rules: faults.rules.into_iter().map(activate).collect() }))
    }

    /// Returns true if a fault is injected into a call. `resources` are the tables, queues or buckets that it names.
    pub(crate) fn injects(&self, kind: FaultKind, action: &str, resources: &[&str]) -> bool {
        let of_kind = self.0.rules.iter().enumerate().filter(|(_, active)| active.rule.kind == kind);
        for (index, active) in of_kind {
            let applies = match &active.rule.target {
                None => true,
                Some(target) => target == action || resources.contains(&target.as_str()),
            };
            if applies && active.decide(self.0.seed, index as u64) {
                return true;
            }
        }
        false
    }

    /// Returns a random number below `bound` for the next decision; 0 if `bound` is 0.
    pub(crate) fn pick(&self, bound: usize) -> usize {
        let made: u64 = self.0.rules.iter().map(|active| active.decisions.load(Ordering::Relaxed)).sum();
        let bound = bound as u64;
        usize::try_from(mix(self.0.seed ^ 0x9e6c, made).checked_rem(bound).unwrap_or(0)).unwrap_or(0)
    }

    /// Returns an independent random bit for each `n`, which selects the affected items of a batch.
    pub(crate) fn coin(&self, n: u64) -> bool {
        let made: u64 = self.0.rules.iter().map(|active| active.decisions.load(Ordering::Relaxed)).sum();
        mix(self.0.seed ^ made.rotate_left(32), n) & 1 == 0
    }

    pub(crate) fn counts(&self) -> FaultCounts {
        let mut counts = FaultCounts::default();
        for active in &self.0.rules {
            for (kind, count) in FaultKind::ALL.iter().zip(&mut counts.0) {
                if *kind == active.rule.kind {
                    *count += active.injected.load(Ordering::Relaxed);
                }
            }
        }
        counts
    }
}

impl ActiveRule {
    fn decide(&self, seed: u64, rule: u64) -> bool {
        let n = self.decisions.fetch_add(1, Ordering::Relaxed);
        // 53 bits, the precision of a double.
        let chance = (mix(seed.wrapping_add(rule << 48), n) >> 11) as f64 / (1_u64 << 53) as f64;
        if chance >= self.rule.probability {
            return false;
        }
        let limit = self.rule.limit.unwrap_or(u64::MAX);
        self.injected
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| (count < limit).then_some(count + 1))
            .is_ok()
    }
}

/// Returns the `n`th value of SplitMix64 after `seed`.
fn mix(seed: u64, n: u64) -> u64 {
    let mut z = seed.wrapping_add(n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn injector(text: &str) -> Injector {
        Injector::new(text.parse().unwrap())
    }

    #[test]
    fn text_form() {
        let text = "seed=7,conflict=0.05,throttle@PutItem=0.5x3,lost-response=0.03,duplicate=1.0,lose=1.0x1";
        let faults: Faults = text.parse().unwrap();
        assert_eq!(faults.to_string(), text);
        assert_eq!("seed=7,lose=1".parse::<Faults>().unwrap().rules[0].limit, Some(1));
        let json = serde_json::to_string(&faults).unwrap();
        assert_eq!(serde_json::from_str::<Faults>(&json).unwrap(), faults);
        assert_eq!("".parse::<Faults>().unwrap(), Faults::default());
    }

    #[test]
    fn wrong_texts_are_named() {
        for bad in ["seed=x", "conflict", "conflict=2.5", "conflict=-1", "fire=0.1", "lose@=1", "lose=0.5xy"]
        {
            let error = format!("throttle=0.1,{bad}").parse::<Faults>().unwrap_err();
            assert!(error.to_string().contains(bad), "{error}");
        }
    }

    #[test]
    fn the_same_calls_meet_the_same_faults() {
        let run = |text: &str| {
            let injector = injector(text);
            (0..200).map(|_| injector.injects(FaultKind::Throttle, "PutItem", &[])).collect::<Vec<_>>()
        };
        assert_eq!(run("seed=7,throttle=0.3"), run("seed=7,throttle=0.3"));
        assert_ne!(run("seed=7,throttle=0.3"), run("seed=8,throttle=0.3"));
    }

    #[test]
    fn probability_target_and_limit() {
        let faults = injector("seed=1,throttle=0.3,lose@items=2,conflict=0.0");
        let injected = (0..10_000).filter(|_| faults.injects(FaultKind::Throttle, "PutItem", &[])).count();
        assert!((2_700..3_300).contains(&injected), "{injected}");
        assert!((0..100).all(|_| !faults.injects(FaultKind::Lose, "SendMessage", &["other"])));
        assert_eq!(
            (0..100).filter(|_| faults.injects(FaultKind::Lose, "SendMessage", &["items"])).count(),
            2
        );
        assert!((0..100).all(|_| !faults.injects(FaultKind::Conflict, "PutItem", &[])));
        assert!((0..100).all(|_| !faults.injects(FaultKind::Duplicate, "SendMessage", &[])));
        assert_eq!(faults.counts().count(FaultKind::Throttle), injected as u64);
        assert_eq!(faults.counts().by_name().get("lose"), Some(&2));
    }
}
