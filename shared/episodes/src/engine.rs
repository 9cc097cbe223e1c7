//! Engine of an episode's sandbox.

use bench_domain::EpisodeState;
use bench_environments::{EngineFacts, EngineName};

/// Key of the facts about the engine in the checkpoint.
pub(crate) const FACTS: &str = "facts";

/// Returns name and version of the engine, if the checkpoint of the round has them.
pub fn known_engine(state: &EpisodeState) -> Option<String> {
    let facts = state.done.get(FACTS)?;
    serde_json::from_value(facts.clone()).ok().map(|facts| engine_text(&facts))
}

/// Returns name and version of the engine, as reports have them.
pub(crate) fn engine_text(facts: &EngineFacts) -> String {
    let name = match facts.engine {
        EngineName::Docker => "docker",
        EngineName::Podman => "podman",
    };
    format!("{name} {}", facts.version)
}
