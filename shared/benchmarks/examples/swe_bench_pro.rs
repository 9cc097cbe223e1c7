//! Answers questions about instances of SWE-bench Pro, for comparisons with the official program.
//!
//! Standard input has a JSON object per line: `row`, `patch`, `scripts` by name, and `output`, the text of the parser's output
//! or null. The answer is a line with `image`, `prompt`, `files` by name, `command`, and `resolved`; or with `error`.
#![allow(clippy::print_stdout, reason = "answers are the program's output")]

use std::collections::BTreeMap;
use std::io::BufRead;

use bench_benchmarks::{InstanceImage, InstanceScripts, ItemProblem, find};
use bench_domain::{EpisodeLog, VerificationReport};
use bench_items::Row;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Question {
    row: Row,
    patch: String,
    scripts: BTreeMap<String, String>,
    output: Option<String>,
}

fn answer(question: Question) -> Result<Value, ItemProblem> {
    let none = || ItemProblem::Content("there is no such benchmark, or no such instance".to_owned());
    let benchmark = find("swe_bench_pro").ok_or_else(none)?;
    let instance = benchmark.instance().ok_or_else(none)?;
    let item = benchmark.item(0, question.row)?.ok_or_else(none)?;
    let image = match instance.image(&item)? {
        InstanceImage::Pull { reference, .. } => reference,
        InstanceImage::Build { .. } => String::new(),
    };
    let scripts = InstanceScripts::from_files(&question.scripts)?;
    let verification = instance.verification(&item, &question.patch, &scripts)?;
    let files: BTreeMap<_, _> = verification.files.into_iter().map(|file| (file.path, file.text)).collect();
    let name = verification.outputs.first().map_or_else(String::new, |name| (*name).to_owned());
    let output = question.output.map(|text| EpisodeLog { name, bytes: text.len() as u64, text, omitted: 0 });
    let report =
        VerificationReport { outputs: output.into_iter().collect(), ..VerificationReport::default() };
    let verdict = instance.grade(&item, &question.patch, &report);
    Ok(json!({
        "image": image,
        "prompt": instance.instruction(&item)?,
        "files": files,
        "command": verification.command,
        "resolved": verdict.detail.get("resolved"),
    }))
}

fn main() -> std::io::Result<()> {
    for line in std::io::stdin().lock().lines() {
        let question = serde_json::from_str(&line?).map_err(std::io::Error::other)?;
        let answered = answer(question).unwrap_or_else(|problem| json!({ "error": problem.to_string() }));
        println!("{answered}");
    }
    Ok(())
}
