//! User simulators on the command line.

use bench_domain::Generation;
use clap::Args;

use super::judge::Judge;
use super::order_settings::parse_temperature;
use crate::judge_name::named_judge;

/// User simulator of benchmarks whose items are conversations.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct UserModelArgs {
    /// Model that simulates users in benchmarks whose items are conversations; it is part of what a score means, and the evaluated
    /// model never takes its place
    #[arg(long, env = "BENCH_USER_MODEL", help_heading = "User model", value_name = "MODEL")]
    pub(crate) user_model: Option<String>,
    /// Temperature of the user model, 0 to 2 [default: the benchmark's own]
    #[arg(long, help_heading = "User model", value_name = "T", value_parser = parse_temperature)]
    pub(crate) user_temperature: Option<f64>,
}

impl UserModelArgs {
    /// Returns the user simulator that was named. A server may also accept its own names of models.
    pub(crate) fn user(&self, remote: bool) -> anyhow::Result<Judge> {
        let named = self.user_model.as_deref().filter(|text| !text.trim().is_empty());
        let named = named.map(|name| named_judge("--user-model", name, remote)).transpose()?;
        let generation = Generation { temperature: self.user_temperature, ..Generation::default() };
        Ok(Judge { is_given: named.is_some(), named, unusable: None, generation })
    }
}
