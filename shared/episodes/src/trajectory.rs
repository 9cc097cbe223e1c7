//! Trajectories of agents that ask a model, as files of the episode and step by step.

mod shorten;

use bench_agents::bash::{BashAgent, BashSettings};
use bench_agents::terminus2::{TaskText, Terminus2, Terminus2Settings};
use bench_agents::{AtifStep, Trajectory, TrajectoryNames};
use bench_domain::{Agent, EpisodeLog, json_text_bytes};

pub use self::shorten::{StepRoom, shortened_step};

use crate::phases::named_step_folder;
use crate::thinker::Thinker;

/// Maximum size of all trajectories of an episode in its stored report, in bytes.
pub const TRAJECTORIES_BYTES_MAX: usize = 16 << 20;
/// Maximum and minimum length to which the texts of a trajectory that is too long are cut, in bytes.
const TEXT_BYTES_MAX: usize = 128 << 10;
const TEXT_BYTES_MIN: usize = 256;

/// Returns the trajectory of an agent on the step of the task with this name, `None` if the task has no steps, with those that it refers to, from its whole transcript. `room` is
/// what they may take in the stored report, in bytes, and is lowered by what they take: in a trajectory that is too long, texts are
/// cut, and one that is too long even so is left out, since it would be no valid file without its middle.
pub fn trajectory_logs(
    step: Option<&str>,
    agent: Agent,
    thinker: &Thinker,
    names: TrajectoryNames<'_>,
    room: &mut usize,
) -> Vec<EpisodeLog> {
    let named = trajectories(agent, thinker, names)
        .into_iter()
        .flat_map(|(main, aside)| std::iter::once(("trajectory.json".to_owned(), main)).chain(aside));
    named
        .filter_map(|(name, trajectory)| {
            let text = fitting(&trajectory, *room)?;
            *room -= json_text_bytes(&text).min(*room);
            let bytes = text.len() as u64;
            Some(EpisodeLog {
                name: named_step_folder(step, &format!("agent/{name}")),
                text,
                bytes,
                omitted: 0,
            })
        })
        .collect()
}

/// Returns the steps of an agent's trajectory so far. Those before the last one stay as they are; the last one gets its
/// observation when the agent sees something.
pub fn trajectory_steps(agent: Agent, thinker: &Thinker, names: TrajectoryNames<'_>) -> Vec<AtifStep> {
    trajectories(agent, thinker, names).map_or_else(Vec::new, |(main, _)| main.steps)
}

/// Builds the trajectory of an agent, and by file name those that it refers to; `None` before its first message.
fn trajectories(
    agent: Agent,
    thinker: &Thinker,
    names: TrajectoryNames<'_>,
) -> Option<(Trajectory, Vec<(String, Trajectory)>)> {
    // The instruction is in the transcript, and the folder of the task in none of its parts.
    match agent {
        Agent::Terminus2 => {
            let settings = Terminus2Settings::parse(&thinker.options).ok()?;
            let texts = thinker.terminus2_texts(settings.format);
            let agent = Terminus2::new(settings, &texts, TaskText::from("")).ok()?;
            let all = agent.trajectories(&thinker.transcript, names)?;
            Some((all.main, all.aside))
        }
        Agent::Bash => {
            let settings = BashSettings::parse(&thinker.options, "/").ok()?;
            let main = BashAgent::new(settings, "").trajectory(&thinker.transcript, names)?;
            Some((main, Vec::new()))
        }
        Agent::Oracle | Agent::Nop | Agent::Custom => None,
    }
}

/// Returns a trajectory as text that takes at most `room` bytes in a stored report.
fn fitting(trajectory: &Trajectory, room: usize) -> Option<String> {
    let text = serde_json::to_string_pretty(trajectory).ok()?;
    if json_text_bytes(&text) <= room {
        return Some(text);
    }
    let mut text_max = TEXT_BYTES_MAX;
    while text_max >= TEXT_BYTES_MIN {
        let limit = StepRoom { text: text_max, all: 4 * text_max };
        let steps = trajectory.steps.iter().map(|step| shortened_step(step, limit)).collect();
        let text = serde_json::to_string_pretty(&Trajectory { steps, ..trajectory.clone() }).ok()?;
        if json_text_bytes(&text) <= room {
            return Some(text);
        }
        text_max /= 2;
    }
    None
}

#[cfg(test)]
mod tests {
    use bench_agents::{Message, Part, Purpose, Reply, Transcript};

    use super::*;

    fn trajectory(turns: usize, text: &str) -> Trajectory {
        let mut transcript = Transcript::default();
        let message =
            |purpose, text: &str| Part::Message(Message { purpose, text: text.to_owned(), at: None });
        transcript.extend([message(Purpose::Task, "Count the lines.")]);
        for turn in 1..=turns {
            let reply = Reply {
                text: text.to_owned(),
                turn: u32::try_from(turn).unwrap(),
                used_bytes: None,
                is_aside: false,
                is_cut: false,
                reasoning: None,
                model: None,
                usage: Default::default(),
                latency_ms: 1,
                at: None,
            };
            transcript.extend([Part::Reply(reply), message(Purpose::Observation, text)]);
        }
        let mut thinker = Thinker::new(Default::default(), Default::default());
        thinker.transcript = transcript;
        let names = TrajectoryNames { session: "s", model: "m" };
        trajectories(Agent::Bash, &thinker, names).unwrap().0
    }

    #[test]
    fn a_trajectory_that_is_too_long_keeps_all_of_its_steps() {
        let whole = trajectory(3, "short");
        assert_eq!(fitting(&whole, 1 << 20), serde_json::to_string_pretty(&whole).ok());
        let long = trajectory(20, &"\u{1}text".repeat(100_000));
        let text = fitting(&long, 1 << 20).unwrap();
        assert!(json_text_bytes(&text) <= 1 << 20);
        let read: Trajectory = serde_json::from_str(&text).unwrap();
        assert_eq!(read.steps.len(), long.steps.len());
        assert!(read.steps[1].message.ends_with(" more characters]"), "{}", read.steps[1].message);
        assert_eq!(fitting(&long, 1_000), None);
    }
}
