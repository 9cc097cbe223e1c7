//! Keys of a file become options of `bench run`.

use std::path::PathBuf;

use clap::CommandFactory;

use super::*;
use crate::args::Cli;
use crate::commands::Command as CliCommand;

/// A file that exists for as long as the value.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("bench-config-{name}-{}.toml", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Self(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn read_run(file: &File, args: &[&str]) -> Result<String, String> {
    let path = file.0.to_str().unwrap();
    let args = [&["bench", "run", "--config", path][..], args].concat();
    match Cli::read(args.iter().map(OsString::from)).map_err(|error| error.to_string())?.command {
        CliCommand::Run(run) => Ok(format!("{run:?}")),
        _ => Err("another command".to_owned()),
    }
}

const FILE: &str = r#"
# A whole run.
model = ["oracle", "openrouter/a/b"]
benchmark = "mmlu_pro"
subset_count = 20
seed = "demo"
temperature = 1
top-p = 0.95
stop = ["END", "\n"]
sampler_seed = -7
system_prompt = "Be brief."
extra-body = { min_p = 0.05, provider = { order = ["x"] } }
budget-usd = 2.5
concurrency = 3
demo = true
json = false
"#;

#[test]
fn every_key_is_the_option_of_its_name() {
    let file = File::new("all", FILE);
    let shown = read_run(&file, &[]).unwrap();
    for part in [
        r#"model: ["oracle", "openrouter/a/b"]"#,
        r#"benchmark: ["mmlu_pro"]"#,
        "subset_count: Some(20)",
        r#"seed: Some("demo")"#,
        "temperature: Some(1.0)",
        "top_p: Some(0.95)",
        r#"stop: ["END", "\n"]"#,
        "sampler_seed: Some(-7)",
        r#"system_prompt: Some("Be brief.")"#,
        r#"extra_body: Some({"min_p": Number(0.05), "provider": Object {"order": Array [String("x")]}})"#,
        "budget_usd: Some(2.5)",
        "concurrency: 3",
        "demo: true",
        "json: false",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let given = shown.split_once("given: ").unwrap().1;
    assert!(given.contains("\"temperature\""), "it wins over variables: {given}");
}

#[test]
fn the_command_line_wins_also_over_lists_and_alternatives() {
    let file = File::new("wins", FILE);
    let run = read_run(&file, &["--model", "oracle", "--stop", "X", "--subset-pct", "5", "--temperature=0"]);
    let shown = run.unwrap();
    for part in [
        r#"model: ["oracle"]"#,
        r#"stop: ["X"]"#,
        "subset_count: None",
        "subset_pct: Some(5)",
        "temperature: Some(0.0)",
        "top_p: Some(0.95)",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let shown = read_run(&file, &["--limit", "3"]).unwrap();
    assert!(shown.contains("subset_count: Some(3)"), "{shown}");
}

#[test]
fn what_is_no_option_is_refused_by_name() {
    for (name, text, part) in [
        (
            "typo",
            "temprature = 1",
            "`temprature` is not an option of `bench run`; did you mean `temperature`?",
        ),
        ("under", "max_token = 1", "did you mean `max-tokens`?"),
        ("far", "frobnicate = 1", "`frobnicate` is not an option of `bench run`; `bench run --help`"),
        ("resume", "resume = 'x'", "`resume` can't be set in a file"),
        ("nested", "config = 'x'", "`config` can't be set in a file"),
        ("models", "[[models]]\nname = 'x'", "did you mean `model`?"),
        ("twice", "top_p = 1\ntop-p = 1", "is given twice"),
        ("alias", "limit = 1\nsubset-count = 1", "is given twice"),
        ("syntax", "a = 1\nb = = 2", "it is not TOML: line 2"),
        ("switch", "demo = 'yes'", "`demo` must be true or false"),
        ("single", "seed = ['a']", "`seed` takes one value, not a list"),
        ("table", "[protocol]\na = 'b'", "`protocol` takes a value, not a table"),
        ("list", "stop = [['a']]", "`stop` must be a list of texts"),
        ("date", "extra_body = { a = 2026-01-01 }", "JSON doesn't have"),
        ("value", "temperature = 3", "it must be a number from 0 to 2"),
        ("empty", "seed = ''", "the value of --seed is empty"),
    ] {
        let file = File::new(name, text);
        let error = read_run(&file, &[]).unwrap_err();
        assert!(error.contains(part), "{name}: {error}");
    }
    let file = File::new("source", "temperature = 3");
    let error = read_run(&file, &[]).unwrap_err();
    assert!(error.contains("the value comes from `") && error.contains("bench-config-source"), "{error}");
    let missing = File(PathBuf::from("/nowhere/run.toml"));
    assert!(read_run(&missing, &[]).unwrap_err().contains("could not be read"));
}

#[test]
fn a_resumed_run_takes_no_file() {
    let file = File::new("resumed", "temperature = 1");
    let error = read_run(&file, &["--resume", "00000000-0000-4000-8000-000000000000"]).unwrap_err();
    assert!(error.contains("cannot be used with"), "{error}");
}

#[test]
fn alternatives_and_exclusions_are_options() {
    let command = Cli::command();
    let run = command.find_subcommand("run").unwrap();
    let ids: Vec<&str> = run.get_arguments().map(|arg| arg.get_id().as_str()).collect();
    for id in ALTERNATIVES.iter().flat_map(|ids| ids.iter()).chain(["config", "resume"].iter()) {
        assert!(ids.contains(id), "{id}");
    }
}
