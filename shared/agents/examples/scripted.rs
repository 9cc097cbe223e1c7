//! Plays scripted episodes of `terminus-2`, for `tests/harbor/compare.py`, which plays them with Harbor, too.
//!
//! `scripted FOLDER` reads an episode per line from standard input, and writes what the agent did, one line for each.
//! `FOLDER` is that of an unpacked Harbor wheel, whose official texts are used.

use std::error::Error;
use std::io::BufRead;
use std::path::Path;

use bench_agents::terminus2::{
    OFFICIAL_PROGRAM, ReplyFormat, Terminus2, Terminus2Settings, Terminus2Texts, official_template,
};
use bench_agents::{
    Act, ModelFailure, ModelFailureKind, ModelReply, Observation, Seen, Step, TerminalState, TrajectoryNames,
    Transcript, Usage,
};
use serde::Deserialize;
use serde_json::{Value, json};

/// Episode: settings, and what model and terminal answer, in order.
#[derive(Debug, Deserialize)]
struct Script {
    format: ReplyFormat,
    instruction: String,
    context_tokens: u64,
    threshold_tokens: u64,
    output_tokens: Option<u64>,
    turns_max: u32,
    is_summarizing: bool,
    calls: Vec<Call>,
    screens: Vec<Screen>,
}

/// Answer to a model call.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Call {
    Reply { text: String },
    Cut { text: String },
    Overflow,
    Failure,
}

/// State of the terminal after a turn.
#[derive(Debug, Deserialize)]
struct Screen {
    is_alive: bool,
    history: String,
    screen: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).ok_or("name the folder of an unpacked Harbor wheel")?;
    for line in std::io::stdin().lock().lines() {
        let script: Script = serde_json::from_str(&line?)?;
        println!("{}", play(&script, Path::new(&folder))?);
    }
    Ok(())
}

/// Plays an episode. Returns its requests and keystrokes in order, its trajectory and its end.
fn play(script: &Script, folder: &Path) -> Result<Value, Box<dyn Error>> {
    let settings = Terminus2Settings {
        format: script.format,
        turns_max: script.turns_max,
        is_summarizing: script.is_summarizing,
        summary_threshold_tokens: script.threshold_tokens,
        context_tokens: script.context_tokens,
        output_tokens: script.output_tokens,
        ..Terminus2Settings::default()
    };
    let template = std::fs::read_to_string(folder.join(official_template(script.format).path))?;
    let program = std::fs::read_to_string(folder.join(OFFICIAL_PROGRAM.path))?;
    let texts = Terminus2Texts::official(script.format, &template, &program)?;
    let agent = Terminus2::new(settings, &texts, script.instruction.as_str())?;
    let Step { mut state, parts } = agent.start();
    let mut transcript = Transcript::new(parts);
    let (mut calls, mut screens) = (script.calls.iter(), script.screens.iter());
    let mut last = None;
    let mut log = Vec::new();
    loop {
        let seen = match agent.act(&state, &transcript)? {
            Act::End(end) => {
                let names = TrajectoryNames { session: "session", model: "model" };
                let trajectory = agent.trajectories(&transcript, names).map(|all| all.main);
                return Ok(json!({ "log": log, "trajectory": trajectory, "end": end }));
            }
            Act::AskModel(call) => {
                let messages = transcript.request(&call);
                let input_tokens = messages.iter().map(|message| tokens(message.content)).sum();
                log.push(json!(["call", messages]));
                answer(calls.next().ok_or("the script has too few calls")?, input_tokens)
            }
            Act::Type(keystrokes) => {
                log.extend(keystrokes.iter().map(|keys| json!(["keys", keys.keys, keys.duration_s])));
                last = screens.next();
                terminal(last)?
            }
            Act::Look => terminal(last)?,
            Act::Run(_) => return Err("terminus-2 runs no commands".into()),
        };
        let observation = Observation { step: state.step(), elapsed_ms: 0, at: None, seen };
        let step = agent.step(&state, &transcript, observation)?;
        transcript.extend(step.parts);
        state = step.state;
    }
}

/// Returns the tokens of a text: the script's model has no tokenizer.
fn tokens(text: &str) -> u64 {
    text.len() as u64 / 4 + 1
}

fn answer(call: &Call, input_tokens: u64) -> Seen {
    let (text, is_cut) = match call {
        Call::Reply { text } => (text, false),
        Call::Cut { text } => (text, true),
        Call::Overflow => return failure(ModelFailureKind::ContextExceeded),
        Call::Failure => return failure(ModelFailureKind::Other),
    };
    let usage = Usage { input_tokens, output_tokens: tokens(text), ..Usage::default() };
    Seen::Reply(ModelReply { text: text.clone(), is_cut, usage, ..ModelReply::default() })
}

fn failure(kind: ModelFailureKind) -> Seen {
    Seen::ModelFailed(ModelFailure { kind, message: "scripted".to_owned(), latency_ms: 0 })
}

fn terminal(screen: Option<&Screen>) -> Result<Seen, Box<dyn Error>> {
    let Screen { is_alive, history, screen } = screen.ok_or("the script has too few screens")?;
    Ok(Seen::Terminal(TerminalState {
        is_alive: *is_alive,
        history: history.clone(),
        screen: screen.clone(),
    }))
}
