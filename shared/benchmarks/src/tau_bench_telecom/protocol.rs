//! Steps of conversations as jobs, and their responses.

use std::time::Duration;

use bench_agents::dialogue::{
    Dialogue, DialogueCall, DialogueMessage, DialogueOpening, PackageCall, PackageMessage, Party, PartyTexts,
};
use bench_domain::sampling::PythonRandom;
use bench_domain::{
    DialogueReport, Generation, HarvestedFile, JobEnd, JobReport, JobSpec, Outcome, ResultFile, Verdict,
};
use bench_items::Item;
use serde::Serialize;
use serde_json::Value;

use super::{PACKAGE_VERSION, TELECOM, TauBenchTelecom, step, task};
use crate::item_problem::ItemProblem;
use crate::scorers::dialogue::{DialogueProtocol, DialogueStep, OpenedDialogue, StepProblem, UserMetadata};

/// Limits of a conversation, as the official command has them.
const STEPS_MAX: u32 = 200;
const ERRORS_MAX: u32 = 10;
/// Seed of the official command, from which the trials' seeds are drawn, and their upper bound.
const SEED: u64 = 300;
const SEED_BOUND: u64 = 1_000_001;

/// Version of the step script's protocol.
const PROTOCOL: u32 = 1;
const RESPONSE: &str = "response.json";
/// Maximum size of a response, which has the texts and tools of a task, or the results of many calls.
const RESPONSE_BYTES_MAX: u64 = 16 << 20;
/// Maximum time of a step. One takes about a second, and more where the package is loaded from a slow disk.
const STEP_TIME: Duration = Duration::from_secs(300);
/// Memory of a step: Python with the package needs about 200 MiB.
const MEMORY_BYTES: u64 = 1 << 30;
/// Difference to 1 that a right conversation's reward may have.
const EPSILON: f64 = 1e-6;

/// Request of a step.
#[derive(Serialize)]
struct Request<'a> {
    version: u32,
    package: Option<&'static str>,
    domain: &'static str,
    op: &'static str,
    task_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<Vec<PackageMessage<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<Vec<PackageCall<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    termination_reason: Option<&'static str>,
}

static USER: UserMetadata = UserMetadata {
    official_model: "gpt-4.1",
    generation: || Generation { temperature: Some(0.0), ..Generation::default() },
};

impl DialogueProtocol for TauBenchTelecom {
    fn user(&self) -> &'static UserMetadata {
        &USER
    }

    fn rules(&self, stop_tokens: &[String]) -> Dialogue {
        Dialogue { max_steps: STEPS_MAX, max_errors: ERRORS_MAX, stop_tokens: stop_tokens.to_vec() }
    }

    /// Python's generator with the seed 300 draws one number per trial from 0 to 1,000,000.
    fn seed(&self, trial: u32) -> i64 {
        let mut random = PythonRandom::new(SEED);
        let mut seed = random.below(SEED_BOUND);
        for _ in 0..trial {
            seed = random.below(SEED_BOUND);
        }
        i64::try_from(seed).unwrap_or_default()
    }

    fn agent(&self) -> &'static str {
        "llm_agent"
    }

    fn job(&self, item: &Item, step: DialogueStep<'_>) -> Result<JobSpec, ItemProblem> {
        let (task_id, domain) = task(item)?;
        let mut request = Request {
            version: PROTOCOL,
            package: (domain == TELECOM).then_some(PACKAGE_VERSION),
            domain,
            op: "",
            task_id,
            messages: None,
            calls: None,
            termination_reason: None,
        };
        match step {
            DialogueStep::Open => request.op = "open",
            DialogueStep::Gold => request.op = "gold",
            DialogueStep::Call { messages, calls } => {
                request.op = "call";
                request.messages = Some(as_package(messages));
                request.calls = Some(calls.iter().map(DialogueCall::as_package).collect());
            }
            DialogueStep::Evaluate { messages, termination } => {
                request.op = "evaluate";
                request.messages = Some(as_package(messages));
                request.termination_reason = Some(termination);
            }
        }
        // Texts and numbers can always be written. The script refuses an empty request.
        let request = serde_json::to_string(&request).unwrap_or_default();
        Ok(JobSpec {
            files: step::files(&request),
            script: step::script().to_owned(),
            time_limit: STEP_TIME,
            memory_bytes: MEMORY_BYTES,
            probe: None,
            needs_landlock: false,
            results: vec![ResultFile { path: RESPONSE.to_owned(), bytes_max: RESPONSE_BYTES_MAX }],
        })
    }

    fn opened(&self, report: &JobReport) -> Result<OpenedDialogue, StepProblem> {
        let response = response(report)?;
        let texts = |party: &str| {
            let texts = response.get(party)?;
            Some(PartyTexts {
                system: texts.get("system")?.as_str()?.to_owned(),
                tools: texts.get("tools").filter(|tools| tools.is_array())?.to_string(),
            })
        };
        let (Some(agent), Some(user)) = (texts("agent"), texts("user")) else {
            return Err(unreadable("has no texts of agent and user"));
        };
        let stop_tokens = stop_tokens(response.get("stop_tokens"));
        if stop_tokens.is_empty() {
            return Err(unreadable("has no texts that end the conversation"));
        }
        let named = |field: &str| {
            let value = response.get("package").and_then(|package| package.get(field)?.as_str());
            value.unwrap_or_default().to_owned()
        };
        let initial = response.get("initial_messages").and_then(Value::as_array).cloned().unwrap_or_default();
        let mut messages: Vec<DialogueMessage> = initial
            .iter()
            .map(|message| {
                DialogueMessage::from_package(message).ok_or_else(|| unreadable("has a wrong message"))
            })
            .collect::<Result<_, _>>()?;
        if messages.is_empty() {
            let greeting = response.get("greeting").and_then(Value::as_str);
            let greeting = greeting.ok_or_else(|| unreadable("has no greeting"))?;
            messages.push(DialogueMessage::text(Party::Agent, greeting));
        }
        let opening = DialogueOpening {
            agent,
            user,
            stop_tokens,
            package_version: named("version"),
            package_digest: named("digest"),
            gold: Vec::new(),
        };
        Ok(OpenedDialogue { opening, messages })
    }

    fn results(
        &self,
        calls: &[DialogueCall],
        report: &JobReport,
    ) -> Result<Vec<DialogueMessage>, StepProblem> {
        let response = response(report)?;
        let results = response.get("results").and_then(Value::as_array).cloned().unwrap_or_default();
        if results.len() != calls.len() {
            return Err(unreadable("has another number of results than there were calls"));
        }
        let each = results.iter().zip(calls).map(|(result, call)| {
            let error = result.get("error").and_then(Value::as_bool).unwrap_or(false);
            let content = result.get("content").and_then(Value::as_str);
            let content = content.ok_or_else(|| unreadable("has a result without a text"))?;
            Ok(DialogueMessage::result(call, content, error))
        });
        each.collect()
    }

    fn reward_info(&self, report: &JobReport) -> Result<Value, StepProblem> {
        let mut response = response(report)?;
        let info = response.get_mut("reward_info").map(Value::take).unwrap_or_default();
        match info.get("reward").and_then(Value::as_f64) {
            Some(_) => Ok(info),
            None => Err(unreadable("has no reward")),
        }
    }

    fn gold(&self, report: &JobReport) -> Result<Vec<DialogueCall>, StepProblem> {
        let response = response(report)?;
        let actions = response.get("actions").and_then(Value::as_array).cloned().unwrap_or_default();
        let calls = actions.iter().map(|action| {
            let requestor = match action.get("requestor").and_then(Value::as_str) {
                Some("user") => Party::User,
                _ => Party::Agent,
            };
            Some(DialogueCall {
                id: String::new(),
                name: action.get("name")?.as_str()?.to_owned(),
                arguments: action.get("arguments").filter(|arguments| arguments.is_object())?.to_string(),
                requestor,
            })
        });
        calls.collect::<Option<_>>().ok_or_else(|| unreadable("has a wrong action"))
    }

    fn verdict(&self, report: &DialogueReport) -> Verdict {
        let reward = report.reward.unwrap_or_default();
        let mut verdict = if (reward - 1.0).abs() <= EPSILON {
            Verdict::correct("")
        } else if reward > 0.0 && reward < 1.0 {
            Verdict::partial(reward, None, why(report))
        } else {
            Verdict::wrong(Outcome::Incorrect, why(report))
        };
        let detail = &mut verdict.detail;
        detail.insert("termination".to_owned(), report.termination.as_str().into());
        detail.insert("steps".to_owned(), report.steps.into());
        detail.insert("tool_errors".to_owned(), report.errors.into());
        detail.insert("seed".to_owned(), report.seed.into());
        detail.insert("user_model".to_owned(), report.user_model.as_str().into());
        detail.insert("package".to_owned(), report.package.as_str().into());
        let used = &report.user;
        detail.insert("user_input_tokens".to_owned(), used.input_tokens.into());
        detail.insert("user_output_tokens".to_owned(), used.output_tokens.into());
        detail.insert("user_cost_usd".to_owned(), used.cost_usd.into());
        if let Some(breakdown) = report.reward_info.get("reward_breakdown").filter(|parts| parts.is_object())
        {
            detail.insert("reward_breakdown".to_owned(), breakdown.clone());
        }
        verdict
    }
}

fn as_package(messages: &[DialogueMessage]) -> Vec<PackageMessage<'_>> {
    messages.iter().map(DialogueMessage::as_package).collect()
}

/// Returns why a conversation isn't right: its early end, or the parts of the reward that are missing.
fn why(report: &DialogueReport) -> String {
    match report.termination.as_str() {
        "max_steps" => {
            return format!("The conversation did not end within {STEPS_MAX} steps: the reward is 0.");
        }
        "too_many_errors" => {
            return format!(
                "{} tool calls failed, of {ERRORS_MAX} that may: the reward is 0.",
                report.errors
            );
        }
        _ => {}
    }
    let failed: Vec<&str> = report
        .reward_info
        .get("reward_breakdown")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter(|(_, reward)| reward.as_f64().is_none_or(|reward| reward < 1.0))
        .map(|(part, _)| part.as_str())
        .collect();
    match failed.is_empty() {
        true => "The reward is below 1.".to_owned(),
        false => format!("The reward misses {}.", failed.join(" and ")),
    }
}

/// Reads the texts that end a conversation: a list, or lists by role.
fn stop_tokens(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::String(token)) => vec![token.clone()],
        Some(Value::Array(tokens)) => tokens.iter().flat_map(|token| stop_tokens(Some(token))).collect(),
        Some(Value::Object(roles)) => stop_tokens(roles.get("user")),
        _ => Vec::new(),
    }
}

/// Reads the response of a step.
fn response(report: &JobReport) -> Result<Value, StepProblem> {
    let Some(text) = report.text(RESPONSE) else { return Err(no_response(report)) };
    let response: Value = serde_json::from_str(text).map_err(|_| unreadable("is not JSON"))?;
    let Some(error) = response.get("error").filter(|error| !error.is_null()) else { return Ok(response) };
    let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
    let message: String = message.chars().filter(|c| !c.is_control()).take(1_000).collect();
    Err(match error.get("kind").and_then(Value::as_str) {
        Some("wrong-version" | "missing-package") => StepProblem::Setup(message),
        Some("replay-differs") => StepProblem::ReplayDiffers(message),
        Some("unknown-task" | "invalid-request") => StepProblem::Refused(message),
        _ => StepProblem::Unreadable(format!("a step of the conversation failed: {message}")),
    })
}

fn no_response(report: &JobReport) -> StepProblem {
    if let Some(HarvestedFile::TooLong(bytes)) = report.files.get(RESPONSE) {
        return StepProblem::Refused(format!("the response of a step has {bytes} bytes, which is too much"));
    }
    let end = match report.end {
        JobEnd::TimedOut => "took too long".to_owned(),
        JobEnd::OverLimit => "used more than a sandbox has".to_owned(),
        JobEnd::Exited(127) => return StepProblem::Setup("the sandbox has no python3".to_owned()),
        JobEnd::Exited(code) => format!("exited with {code}"),
        JobEnd::Vanished | JobEnd::Halted => "was killed".to_owned(),
    };
    let last = report.stderr_tail.trim().lines().next_back().unwrap_or("no output");
    let last: String = last.chars().filter(|c| !c.is_control()).take(300).collect();
    StepProblem::Unreadable(format!("a step of the conversation {end} without a response: {last}"))
}

fn unreadable(problem: &str) -> StepProblem {
    StepProblem::Unreadable(format!("the response of a step {problem}"))
}
