//! Access policy checks of orders.

use bench_domain::run::AuthMode;
use bench_domain::{BenchmarkName, Code, ModelRole, RunSpec};
use bench_inference::{ModelName, ModelSource};
use bench_state::access::{AccessPolicy, AccessRow};

use crate::Standing;
use crate::orderer::CHUTES;

/// Benchmark whose items are uploaded terminal tasks.
pub const TERMINAL_TASKS: &str = "terminal_tasks";

/// Reason why the access policy rejects an order.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AccessDenied {
    /// The policy doesn't let callers of this kind order.
    #[error(
        "this server takes no orders from callers with {}; its access policy is `{policy}`",
        credential(*.row)
    )]
    Caller {
        /// Row that the policy would need.
        row: AccessRow,
        /// Current policy.
        policy: AccessPolicy,
    },
    /// The session of a signed-in user may not call models on the user's account.
    #[error("Chutes session missing chutes:invoke scope")]
    Scope,
    /// The account of a signed-in user can't pay for models of this provider, and the operator's keys don't.
    #[error(
        "the account of a signed-in user can't pay for models of `{0}`; order them with a key of your own, as \
         `Authorization: Bearer KEY`"
    )]
    Payer(ModelSource),
    /// The operator's key pays for a model of a stored order, and no longer does for signed-in users.
    #[error(
        "the operator's key pays for the {} `{model}` of this order, but not for signed-in users; order again with a \
         model that your own account or key pays for",
        role.label()
    )]
    StoredPayer {
        /// Role of the model.
        role: ModelRole,
        /// Qualified name of the model.
        model: String,
    },
    /// Only listed callers may order answers of this source.
    #[error("runs of `{0}` are for admins and listed callers on this server")]
    Source(ModelSource),
    /// Only listed callers may order the benchmark.
    #[error("the dataset of `{0}` is gated, so runs of it are for admins and listed callers on this server")]
    Benchmark(BenchmarkName),
    /// Only listed callers may upload and order terminal tasks.
    #[error(
        "terminal tasks are for admins and for callers who are listed with the permission `tasks` on this server"
    )]
    Tasks,
}

impl AccessDenied {
    /// Returns the stable code of the rejection, for programs.
    pub const fn code(&self) -> Code {
        match self {
            Self::Caller { .. }
            | Self::Payer(_)
            | Self::StoredPayer { .. }
            | Self::Source(_)
            | Self::Tasks => Code::OrderNotAllowed,
            Self::Scope => Code::ScopeMissing,
            Self::Benchmark(_) => Code::GatedBenchmark,
        }
    }
}

fn credential(row: AccessRow) -> &'static str {
    match row {
        AccessRow::Admin => "the admin secret",
        AccessRow::Token => "an access token",
        AccessRow::ProviderKey => "a provider's key",
        AccessRow::Session => "a sign-in",
    }
}

impl Standing {
    /// Rejects an order that the access policy doesn't allow for a caller of this standing. `benchmarks` are those
    /// known so far.
    ///
    /// # Errors
    /// Returns what isn't allowed.
    pub fn check_access(
        self,
        policy: &AccessPolicy,
        source: ModelSource,
        benchmarks: &[BenchmarkName],
    ) -> Result<(), AccessDenied> {
        if policy.local {
            return self.check_payer(source);
        }
        if let Some(row) = self.row().filter(|row| !policy.has(*row)) {
            return Err(AccessDenied::Caller { row, policy: policy.clone() });
        }
        // Answers to terminal tasks come from agents; the oracle is one of them.
        let has_only_tasks = !benchmarks.is_empty() && benchmarks.iter().all(is_terminal_tasks);
        if !source.is_remote() && !self.permissions().oracle && !has_only_tasks {
            return Err(AccessDenied::Source(source));
        }
        self.check_benchmarks(benchmarks)?;
        self.check_payer(source)
    }

    /// Rejects orders of signed-in users for which neither the user's account nor the operator pays.
    fn check_payer(self, source: ModelSource) -> Result<(), AccessDenied> {
        match self {
            Self::User(user) if source.is_remote() && !user.operator_pays => match source.as_str() {
                CHUTES if user.has_invoke_scope => Ok(()),
                CHUTES => Err(AccessDenied::Scope),
                _ => Err(AccessDenied::Payer(source)),
            },
            _ => Ok(()),
        }
    }

    /// Rejects a stored order of a signed-in user if the operator's key would pay for one of its models: the operator may
    /// have allowed that when it was placed, and not now. `judge_model` is the operator's judge, which is for all callers.
    ///
    /// # Errors
    /// Returns the first such model.
    pub fn check_payers(self, spec: &RunSpec, judge_model: Option<&ModelName>) -> Result<(), AccessDenied> {
        let Self::User(user) = self else { return Ok(()) };
        if user.operator_pays {
            return Ok(());
        }
        for role in ModelRole::ALL {
            // A run that judges answers again doesn't ask the model.
            if role == ModelRole::Model && spec.rejudges.is_some() {
                continue;
            }
            let Some((model, AuthMode::System)) = spec.asked_model(role) else { continue };
            // The operator's keys aren't for addresses from the command line.
            let is_keyed = model.base_url.is_none()
                && ModelSource::from_name(&model.provider).is_none_or(ModelSource::is_remote);
            let name = model.qualified();
            let is_offered =
                role == ModelRole::Judge && judge_model.is_some_and(|offered| offered.to_string() == name);
            if is_keyed && !is_offered {
                return Err(AccessDenied::StoredPayer { role, model: name });
            }
        }
        Ok(())
    }

    /// Rejects a caller who may not upload terminal tasks.
    ///
    /// # Errors
    /// Returns what isn't allowed.
    pub fn check_uploads(self, policy: &AccessPolicy) -> Result<(), AccessDenied> {
        if policy.local {
            return Ok(());
        }
        if let Some(row) = self.row().filter(|row| !policy.has(*row)) {
            return Err(AccessDenied::Caller { row, policy: policy.clone() });
        }
        if self.permissions().tasks { Ok(()) } else { Err(AccessDenied::Tasks) }
    }

    /// Rejects gated benchmarks and terminal tasks that the caller may not order.
    pub(crate) fn check_benchmarks(self, benchmarks: &[BenchmarkName]) -> Result<(), AccessDenied> {
        if benchmarks.iter().any(is_terminal_tasks) && !self.permissions().tasks {
            return Err(AccessDenied::Tasks);
        }
        match benchmarks.iter().find(|name| !self.may_order(name)) {
            Some(name) => Err(AccessDenied::Benchmark(name.clone())),
            None => Ok(()),
        }
    }

    /// Returns true if a caller of this standing may order a benchmark, gated or not.
    pub(crate) fn may_order(self, name: &BenchmarkName) -> bool {
        self.permissions().gated
            || bench_benchmarks::find(name.as_str()).is_none_or(|benchmark| benchmark.spec().gate.is_none())
    }
}

fn is_terminal_tasks(name: &BenchmarkName) -> bool {
    name.as_str() == TERMINAL_TASKS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Permissions;

    fn policy(rows: &str, local: bool) -> AccessPolicy {
        AccessPolicy::from_vars(|name| (name == "BENCH_ACCESS").then(|| rows.to_owned()), local).unwrap()
    }

    #[test]
    fn a_caller_orders_what_policy_and_permissions_allow() {
        let (open, gated) = ("mmlu_pro".parse().unwrap(), bench_benchmarks::gated().pop_first().unwrap());
        let provider = ModelSource::from_name("chutes").unwrap();
        let (none, all) = (Permissions::default(), Permissions { oracle: true, gated: true, tasks: true });
        let caller = |standing: Standing, rows: &str, source, benchmark: &BenchmarkName| {
            let checked =
                standing.check_access(&policy(rows, false), source, std::slice::from_ref(benchmark));
            checked.map_err(|refused| refused.code())
        };
        for (standing, row) in [
            (Standing::Admin, "admin"),
            (Standing::Token(all), "token"),
            (Standing::ListedKey(all), "provider-key"),
        ] {
            assert_eq!(caller(standing, row, ModelSource::Oracle, &gated), Ok(()), "{row}");
            let others = ["admin", "token", "provider-key"].into_iter().filter(|other| *other != row);
            for other in others {
                let refused = caller(standing, other, provider, &open);
                assert_eq!(refused, Err(Code::OrderNotAllowed), "{row} {other}");
            }
        }
        for (standing, row) in [
            (Standing::Token(none), "token"),
            (Standing::ListedKey(none), "provider-key"),
            (Standing::Key, "provider-key"),
        ] {
            assert_eq!(caller(standing, row, provider, &open), Ok(()), "{row}");
            assert_eq!(
                caller(standing, row, ModelSource::Oracle, &open),
                Err(Code::OrderNotAllowed),
                "{row}"
            );
            assert_eq!(caller(standing, row, provider, &gated), Err(Code::GatedBenchmark), "{row}");
        }
        let tasks: BenchmarkName = TERMINAL_TASKS.parse().unwrap();
        let only_tasks = Permissions { tasks: true, ..none };
        for (permissions, source, expected) in [
            (only_tasks, ModelSource::Oracle, Ok(())),
            (only_tasks, provider, Ok(())),
            (Permissions { tasks: false, ..all }, ModelSource::Oracle, Err(Code::OrderNotAllowed)),
        ] {
            assert_eq!(caller(Standing::Token(permissions), "token", source, &tasks), expected);
        }
        let uploads = |standing: Standing, rows| standing.check_uploads(&policy(rows, false)).is_ok();
        assert!(uploads(Standing::Admin, "admin") && uploads(Standing::Token(only_tasks), "token"));
        assert!(!uploads(Standing::Token(only_tasks), "admin") && !uploads(Standing::Key, "provider-key"));
        // On a server that is bound to loopback, the policy has no effect.
        let local = Standing::Key.check_access(&policy("admin", true), ModelSource::Oracle, &[gated]);
        assert_eq!(local, Ok(()));
    }
}
