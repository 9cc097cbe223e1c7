//! User simulators on the command line.

use std::env;

use bench_domain::Generation;
use clap::Args;

use super::judge::Judge;
use super::order_settings::parse_temperature;
use crate::judge_name::named_judge;

/// Variable with the default of `--user-model`.
const VARIABLE: &str = "BENCH_USER_MODEL";

/// User simulator of benchmarks whose items are conversations.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct UserModelArgs {
    /// Model that simulates users in benchmarks whose items are conversations; it is part of what a score means, and the evaluated
    /// model never takes its place [default: $BENCH_USER_MODEL]
    #[arg(long, help_heading = "User model", value_name = "MODEL")]
    pub(crate) user_model: Option<String>,
    /// Temperature of the user model, 0 to 2 [default: the benchmark's own]
    #[arg(long, help_heading = "User model", value_name = "T", value_parser = parse_temperature)]
    pub(crate) user_temperature: Option<f64>,
}

impl UserModelArgs {
    /// Returns the user simulator that the command line or the variable names. A server may also accept its own names of
    /// models.
    pub(crate) fn user_or_variable(&self, remote: bool) -> anyhow::Result<Judge> {
        let user = self.user(remote)?;
        let variable = env::var(VARIABLE).ok().filter(|name| !user.is_given && !name.trim().is_empty());
        let named = variable.map(|name| named_judge(VARIABLE, &name, remote)).transpose()?;
        Ok(Judge { named: user.named.or(named), ..user })
    }

    /// Returns the user simulator that the command line names.
    pub(crate) fn user(&self, remote: bool) -> anyhow::Result<Judge> {
        let named = self.user_model.as_deref().filter(|text| !text.trim().is_empty());
        let named = named.map(|name| named_judge("--user-model", name, remote)).transpose()?;
        let generation = Generation { temperature: self.user_temperature, ..Generation::default() };
        Ok(Judge { is_given: named.is_some(), named, unusable: None, generation })
    }
}
