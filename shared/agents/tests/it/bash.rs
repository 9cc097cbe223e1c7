//! Episodes of `bash` with scripted models.

use bench_agents::bash::{Action, BashAgent, BashSettings, BashState, FormatError, parse_action};
use bench_agents::{
    Act, Budget, CommandResult, End, ModelFailureKind, Observation, Role, Seen, Step, StepError,
    TrajectoryNames, Transcript,
};
use proptest::prelude::*;

use crate::driver::{cut, failure, overflow, reply, screen};

struct Episode {
    agent: BashAgent,
    state: BashState,
    transcript: Transcript,
    elapsed_ms: u64,
    stored_bytes: usize,
}

impl Episode {
    fn new(settings: BashSettings) -> Self {
        let agent = BashAgent::new(settings, "Make it work.");
        let Step { state, parts } = agent.start();
        Self { agent, state, transcript: Transcript::new(parts), elapsed_ms: 0, stored_bytes: 0 }
    }

    fn act(&self) -> Act {
        self.agent.act(&self.state, &self.transcript).unwrap()
    }

    fn question(&self) -> String {
        let Act::AskModel(call) = self.act() else { panic!("no request: {:?}", self.act()) };
        let messages = self.transcript.request(&call);
        assert_eq!(messages.last().unwrap().role, Role::User);
        messages.last().unwrap().content.to_owned()
    }

    fn observation(&self, seen: Seen) -> Observation {
        Observation { step: self.state.step(), elapsed_ms: self.elapsed_ms, at: None, seen }
    }

    /// Gives the agent an observation, after a delivery of which nothing was saved.
    fn give(&mut self, seen: Seen) {
        let observation = self.observation(seen);
        let step = self.agent.step(&self.state, &self.transcript, observation.clone()).unwrap();
        assert_eq!(self.agent.step(&self.state, &self.transcript, observation.clone()).unwrap(), step);
        let saved = serde_json::to_string(&step.state).unwrap();
        assert!(saved.len() < 1_000);
        self.stored_bytes += serde_json::to_string(&step.parts).unwrap().len();
        self.state = serde_json::from_str(&saved).unwrap();
        self.transcript.extend(step.parts);
        let again = self.agent.step(&self.state, &self.transcript, observation.clone());
        assert_eq!(again, Err(StepError::OtherStep { given: observation.step, expected: self.state.step() }));
    }

    fn turn(&mut self, script: &str, output: &str) {
        self.give(reply(&block("bash", script)));
        self.give(ended(0, output));
    }
}

fn block(word: &str, text: &str) -> String {
    format!("I do this.\n\n```{word}\n{text}\n```\n")
}

fn ended(exit_code: i32, output: &str) -> Seen {
    let exit_code = Some(exit_code);
    Seen::Command(CommandResult { exit_code, output: output.to_owned(), ..CommandResult::default() })
}

fn settings() -> BashSettings {
    BashSettings::new("/app")
}

#[test]
fn commands_run_in_the_folder_until_the_explicit_end() {
    let mut episode = Episode::new(settings());
    assert!(
        episode.question().contains("starts in `/app`") && episode.question().ends_with("Make it work.\n")
    );
    episode.give(reply(&block("bash", "cd /tmp\nls")));
    let Act::Run(command) = episode.act() else { panic!() };
    assert_eq!((command.script.as_str(), command.folder.as_str()), ("cd /tmp\nls\n", "/app"));
    assert_eq!((command.time_limit_ms, command.output_bytes_max), (120_000, 10_000));
    episode.give(ended(2, "no such file\n"));
    assert_eq!(episode.question(), "Exit code: 2\nOutput:\nno such file\n");
    episode.give(reply("All tests pass.\n\n```done\n```"));
    assert_eq!(episode.act(), Act::End(End::Completed));
    assert_eq!((episode.state.turns(), episode.state.used().output_tokens), (2, 20));
    let names = TrajectoryNames { session: "s", model: "m/x" };
    let trajectory = episode.agent.trajectory(&episode.transcript, names).unwrap();
    let value = serde_json::to_value(&trajectory).unwrap();
    assert_eq!(value["steps"].as_array().unwrap().len(), 3);
    assert_eq!(value["steps"][1]["tool_calls"][0]["arguments"]["command"], "cd /tmp\nls\n");
    assert_eq!(value["steps"][1]["observation"]["results"][0]["source_call_id"], "call_1");
    assert_eq!(value["steps"][2]["tool_calls"][0]["function_name"], "finish");
    assert_eq!(value["final_metrics"]["total_prompt_tokens"], 200);
}

#[test]
fn results_are_bounded_and_name_what_happened() {
    let mut episode = Episode::new(BashSettings { output_bytes_max: 100, ..settings() });
    for (result, expected) in [
        (
            CommandResult { is_timed_out: true, ..CommandResult::default() },
            "Killed after 120 seconds.\nNo output.",
        ),
        (CommandResult::default(), "Killed.\nNo output."),
        (
            CommandResult {
                exit_code: Some(0),
                output: "a\0é\u{1b}".into(),
                omitted_bytes: 7,
                is_timed_out: false,
            },
            "Exit code: 0\nOutput:\na\0é\u{1b}\n[7 bytes in the middle of the output were not fetched]",
        ),
    ] {
        episode.give(reply(&block("bash", "x")));
        episode.give(Seen::Command(result));
        assert_eq!(episode.question(), expected);
    }
    episode.turn("x", &"é".repeat(1_000_000));
    assert!(episode.question().len() < 250 && episode.question().contains("output limited to 100 bytes"));
}

#[test]
fn a_reply_has_exactly_one_block() {
    for (text, expected) in [
        ("```bash\nls\n```", Ok(Action::Run("ls\n".into()))),
        ("  ```bash  \nls\n  ```  ", Ok(Action::Run("ls\n".into()))),
        ("````bash\ncat <<E\n```\nE\n````", Ok(Action::Run("cat <<E\n```\nE\n".into()))),
        ("```python\n```bash\n```\n```done\n```", Ok(Action::Finish)),
        ("`ls` or ```ls```\n```done\nAll is well.\n```", Ok(Action::Finish)),
        ("", Err(FormatError::Missing)),
        ("```\nls\n```", Err(FormatError::Missing)),
        ("{\"commands\": []}", Err(FormatError::Missing)),
        ("```bash\nls\n```\n```bash\npwd\n```", Err(FormatError::Several(2))),
        ("```bash\nls\n```\n```done\n```", Err(FormatError::Several(2))),
        ("```bash\nls", Err(FormatError::Unclosed)),
        ("```bash\n \n```", Err(FormatError::Empty)),
    ] {
        assert_eq!(parse_action(text), expected, "{text}");
    }
}

#[test]
fn replies_without_an_action_end_the_episode_after_some_attempts() {
    let mut episode = Episode::new(settings());
    episode.give(reply("ls"));
    let sentence = "Nothing was run: the reply has neither a `bash` nor a `done` block.";
    assert!(episode.question().starts_with(sentence));
    episode.give(cut("```bash\nls\n```\nmore"));
    assert!(episode.question().contains("maximum length"));
    episode.turn("ls", "a");
    for _ in 0..5 {
        episode.give(reply("```bash\n"));
    }
    assert_eq!(episode.act(), Act::End(End::FormatErrors));
}

#[test]
fn limits_and_failures_end_the_episode() {
    let budget = |tokens_max, cost_usd_max, time_ms_max| Budget { tokens_max, cost_usd_max, time_ms_max };
    for (turns_max, budget, turns, end) in [
        (2, Budget::default(), 2, End::TurnLimit),
        (9, budget(Some(300), None, None), 3, End::TokenLimit),
        (9, budget(None, Some(0.5), None), 2, End::CostLimit),
        (9, budget(None, None, Some(3_000)), 3, End::TimeLimit),
        (9, budget(None, Some(0.0), None), 0, End::CostLimit),
    ] {
        let mut episode = Episode::new(BashSettings { turns_max, budget, ..settings() });
        while !matches!(episode.act(), Act::End(_)) {
            episode.elapsed_ms += 1_000;
            episode.turn("ls", "a");
        }
        assert_eq!((episode.state.end(), episode.state.turns()), (Some(&end), turns));
    }
    let mut episode = Episode::new(settings());
    episode.give(overflow());
    assert_eq!(episode.act(), Act::End(End::ContextExceeded));
    let mut episode = Episode::new(settings());
    let observation = episode.observation(screen("$ "));
    let error = episode.agent.step(&episode.state, &episode.transcript, observation).unwrap_err();
    assert_eq!(error.to_string(), "step 1 waits for a reply of the model, not for the terminal");
    episode.give(failure(ModelFailureKind::Other));
    assert_eq!(episode.act(), Act::End(End::ModelFailed { message: "no model".into() }));
}

#[test]
fn stored_bytes_grow_linearly() {
    let mut episode = Episode::new(BashSettings { turns_max: 400, ..settings() });
    let mut at_50 = 0;
    for turn in 0..200 {
        episode.turn(&format!("make {turn}"), &"output\n".repeat(300));
        if turn == 49 {
            at_50 = episode.stored_bytes;
        }
    }
    assert!(episode.stored_bytes < at_50 * 4 + at_50 / 10);
}

proptest! {
    #[test]
    fn no_reply_and_no_output_causes_a_panic(bytes: Vec<u8>, output: Vec<u8>, exit_code: Option<i32>) {
        let mut episode = Episode::new(BashSettings { output_bytes_max: 100, ..settings() });
        episode.give(reply(&String::from_utf8_lossy(&bytes)));
        if !matches!(episode.act(), Act::Run(_)) {
            episode.give(reply(&block("bash", "ls")));
        }
        let output = String::from_utf8_lossy(&output).into_owned();
        episode.give(Seen::Command(CommandResult { exit_code, output, ..CommandResult::default() }));
        prop_assert!(episode.question().len() < 500);
    }
}
