//! Trajectories of agents that ask a model, as files of the episode.

use std::time::Duration;

use bench_agents::{Trajectory, TrajectoryNames};
use bench_domain::{Agent, EpisodeLog};

use crate::TaskFiles;
use crate::phases::{Machine, step_folder};
use crate::thinker::Thinker;

/// Maximum size of a trajectory, in bytes. A longer one is left out: without its middle, it would be no valid file.
const TRAJECTORY_BYTES_MAX: usize = 24 << 20;

/// Returns the trajectory of an agent on a step of the task, with those that it refers to, from its whole transcript.
pub fn trajectory_logs(
    files: &TaskFiles,
    agent: Agent,
    thinker: &Thinker,
    task_step: usize,
    names: TrajectoryNames<'_>,
) -> Vec<EpisodeLog> {
    let Some(step) = files.admitted.task.steps.get(task_step) else { return Vec::new() };
    // Neither folder nor time limit is part of a trajectory.
    let trajectories = match Machine::new(agent, thinker, step, "/", Duration::MAX) {
        Ok(Machine::Terminus2(agent)) => {
            let all = agent.trajectories(&thinker.transcript, names);
            all.map(|all| (all.main, all.aside)).into_iter().collect::<Vec<_>>()
        }
        Ok(Machine::Bash(agent)) => {
            let main = agent.trajectory(&thinker.transcript, names);
            main.map(|main| (main, Vec::new())).into_iter().collect()
        }
        Err(_) => Vec::new(),
    };
    let named = trajectories
        .into_iter()
        .flat_map(|(main, aside)| std::iter::once(("trajectory.json".to_owned(), main)).chain(aside));
    named
        .filter_map(|(name, trajectory)| log(step_folder(step, &format!("agent/{name}")), &trajectory))
        .collect()
}

fn log(name: String, trajectory: &Trajectory) -> Option<EpisodeLog> {
    let text = serde_json::to_string_pretty(trajectory).ok()?;
    let bytes = text.len();
    (bytes <= TRAJECTORY_BYTES_MAX).then_some(EpisodeLog { name, text, bytes: bytes as u64, omitted: 0 })
}
