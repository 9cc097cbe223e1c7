//! Roles of a conversation with a simulated user, as far as they are known without a sandbox.

use std::fmt;

use bench_benchmarks::{Benchmark, DialogueProtocol};
use serde::Serialize;

use crate::commands::run::order::Plan;

/// A conversation before its first message.
#[derive(Debug, Serialize)]
pub(super) struct Conversation {
    agent: Role,
    user: Role,
    /// Seed of each sample, which both models get.
    seeds: Vec<i64>,
    /// Official program that has all texts.
    protocol: &'static str,
}

/// Party of a conversation.
#[derive(Debug, Serialize)]
struct Role {
    /// Models that were named, each in a run of its own.
    models: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    /// Seed of all samples instead of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
}

impl Conversation {
    /// Describes the conversations of a benchmark with the settings of an order.
    pub(super) fn new(
        plan: &Plan,
        benchmark: &'static dyn Benchmark,
        protocol: &'static dyn DialogueProtocol,
        samples: u32,
    ) -> Self {
        let (facts, ordered) = (benchmark.metadata(), plan.settings.generation());
        let own = (facts.generation)();
        let user = (protocol.user().generation)();
        Self {
            agent: Role {
                models: plan.models.iter().map(|model| model.shown()).collect(),
                temperature: ordered.temperature.or(own.temperature),
                seed: ordered.seed.or(own.seed),
            },
            user: Role {
                models: plan.user.named.iter().map(|named| named.name.clone()).collect(),
                temperature: plan.user.generation.temperature.or(user.temperature),
                seed: plan.user.generation.seed,
            },
            seeds: (0..samples).map(|sample| protocol.seed(sample)).collect(),
            protocol: facts.protocol,
        }
    }
}

impl fmt::Display for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "agent: {}", self.agent)?;
        writeln!(f, "user: {}", self.user)?;
        let seeds: Vec<String> = self.seeds.iter().map(i64::to_string).collect();
        writeln!(f, "seeds of the samples: {}", seeds.join(", "))?;
        writeln!(
            f,
            "A sandbox opens the conversation: system prompts, tools and the agent's greeting come from the official program."
        )?;
        writeln!(f, "The first request asks the user model to answer the greeting.")
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.models.as_slice() {
            [] => f.write_str("no model is named")?,
            models => f.write_str(&models.join(", "))?,
        }
        if let Some(temperature) = self.temperature {
            write!(f, ", temperature {temperature}")?;
        }
        if let Some(seed) = self.seed {
            write!(f, ", seed {seed}")?;
        }
        Ok(())
    }
}
