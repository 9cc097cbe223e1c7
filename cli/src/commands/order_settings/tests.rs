//! Every option is sent, set and shown.

use bench_api::document;
use clap::{Command, FromArgMatches};
use serde_json::json;

use super::*;

/// Every option with a value.
const EVERYTHING: [&str; 33] = [
    "order",
    "--samples=3",
    "--temperature=0.5",
    "--max-tokens=4096",
    "--top-p",
    "0.95",
    "--top-k",
    "20",
    "--stop",
    "END",
    "--stop",
    "\n",
    "--sampler-seed",
    "-7",
    "--system-prompt",
    "Be brief.",
    "--reasoning-effort",
    "high",
    "--thinking-budget",
    "2048",
    "--extra-body",
    r#"{"min_p": 1.0}"#,
    "--omit",
    "top-p",
    "--omit",
    "stop",
    "--max-tokens-field=max_completion_tokens",
    "--requests-per-minute",
    "60",
    "--timeout",
    "30",
    "--max-failures",
    "5",
];

/// Returns settings with a value in every field.
pub(crate) fn everything() -> OrderSettings {
    parse(&EVERYTHING).unwrap()
}

fn parse(args: &[&str]) -> Result<OrderSettings, String> {
    let command = OrderSettings::augment_args(Command::new("order"));
    let matches = command.try_get_matches_from(args).map_err(|error| error.to_string())?;
    OrderSettings::from_arg_matches(&matches).map_err(|error| error.to_string())
}

#[test]
fn what_is_given_is_sent_set_and_shown() {
    let settings = everything();
    let sent = json!({
        "samples": 3, "temperature": 0.5, "max_tokens": 4096, "top_p": 0.95, "top_k": 20, "stop": ["END", "\n"],
        "sampler_seed": -7, "system_prompt": "Be brief.", "reasoning_effort": "high", "thinking_budget": 2048,
        "extra_body": { "min_p": 1.0 }, "omit": ["top_p", "stop"], "max_tokens_field": "max_completion_tokens",
        "requests_per_minute": 60, "timeout_seconds": 30, "max_failures": 5,
    });
    assert_eq!(Value::Object(settings.fields()), sent);
    let order_fields = &document()["components"]["schemas"]["Order"]["properties"];
    let missing = sent.as_object().unwrap().keys().find(|name| order_fields.get(name.as_str()).is_none());
    assert_eq!(missing, None, "an order has no such field");
    // Views of schedules have the same fields.
    assert_eq!(serde_json::from_value::<OrderSettings>(sent).unwrap(), settings);

    let mut order = Order::default();
    settings.set_in(&mut order);
    let expected = Generation {
        temperature: Some(0.5),
        top_p: Some(0.95),
        max_tokens: Some(4096),
        stop: vec!["END".into(), "\n".into()],
        seed: Some(-7),
        top_k: Some(20),
        system_prompt: Some("Be brief.".into()),
        reasoning_effort: Some(ReasoningEffort::High),
        thinking_budget: Some(2048),
        extra_body: Some(r#"{"min_p":1.0}"#.into()),
        omit: vec![OmittedSetting::TopP, OmittedSetting::Stop],
        max_tokens_field: Some(MaxTokensField::MaxCompletionTokens),
    };
    assert_eq!((order.samples, order.generation), (Some(3), expected));
    let limits =
        RunLimits { requests_per_minute: Some(60), timeout_seconds: Some(30), max_failures: Some(5) };
    assert_eq!(order.limits, limits);
    let unshown: Vec<_> = settings.shown().into_iter().filter(|(_, value)| value.is_none()).collect();
    assert_eq!(unshown, []);

    assert_eq!(OrderSettings::default().fields(), Map::new());
    assert!(OrderSettings::default().shown().iter().all(|(_, value)| value.is_none()));
    let mut order = Order::default();
    OrderSettings::default().set_in(&mut order);
    assert_eq!(order, Order::default());
}

#[test]
fn values_out_of_bounds_are_refused() {
    let long = "x".repeat(33 * 1024);
    for (args, part) in [
        (["--top-p", "0"], "above 0, and at most 1"),
        (["--top-p", "nan"], "above 0"),
        (["--top-k", "0"], "1..=1000000"),
        (["--sampler-seed", "x"], "invalid digit"),
        (["--system-prompt", "@/nowhere/prompt.txt"], "could not read `/nowhere/prompt.txt`"),
        (["--system-prompt", " "], "it is empty"),
        (["--system-prompt", &long], "33792 bytes, and the maximum is 32768"),
        (["--reasoning-effort", "much"], "one of `none`, `minimal`"),
        (["--thinking-budget", "0"], "1..=10000000"),
        (["--extra-body", "[1]"], "it must be a JSON object"),
        (["--extra-body", "{min_p: 1}"], "it must be a JSON object"),
        (["--omit", "seed"], "one of `temperature`, `top_p`, `max_tokens`, `stop`"),
        (["--max-tokens-field", "tokens"], "one of `max_tokens`, `max_completion_tokens`"),
        (["--requests-per-minute", "0"], "1..=60000"),
        (["--timeout", "3601"], "a whole number of seconds from 1 to 3600"),
        (["--timeout", "1.5"], "a whole number of seconds from 1 to 3600"),
        (["--max-failures", "0"], "1..=100000000"),
    ] {
        let error = parse(&["order", args[0], args[1]]).unwrap_err();
        assert!(error.contains(part) && error.contains(args[0]), "{args:?}: {error}");
    }
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    let check = |args: &[&str]| parse(args).unwrap().check().map_err(|error| error.to_string());
    for (args, part) in [
        (vec!["--temperature", "1", "--omit", "temperature"], "--omit: `temperature` can't be both"),
        (vec!["--thinking-budget", "1", "--reasoning-effort", "low"], "--thinking-budget: it can't be given"),
        (vec!["--extra-body", r#"{"model": "x"}"#], "--extra-body: it must not contain `model`"),
        (vec!["--stop", ""], "1 to 200 characters"),
        (["--stop", "x"].repeat(17), "at most 16 texts"),
    ] {
        let error = check(&[&["order"][..], &args].concat()).unwrap_err();
        assert!(error.contains(part), "{args:?}: {error}");
    }
    assert_eq!(check(&["order", "--omit", "temperature", "--top-p", "1"]), Ok(()));
}

#[test]
fn a_system_prompt_is_read_from_a_file() {
    let file = std::env::temp_dir().join(format!("bench-system-prompt-{}", std::process::id()));
    std::fs::write(&file, "Be brief.\n\nAlways.\r\n").unwrap();
    let text = values::parse_system_prompt(&format!("@{}", file.display())).unwrap();
    assert_eq!(text, "Be brief.\n\nAlways.");
    std::fs::write(&file, [0xff]).unwrap();
    let error = values::parse_system_prompt(&format!("@{}", file.display())).unwrap_err();
    assert!(error.contains("UTF-8"), "{error}");
    std::fs::remove_file(file).unwrap();
}

#[test]
fn variables_replace_only_options_that_exist() {
    let command = OrderSettings::augment_args(Command::new("order"));
    for (id, _) in VARIABLES {
        assert!(command.get_arguments().any(|arg| arg.get_id() == id), "{id}");
    }
}
