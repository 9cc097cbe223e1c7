//! Generated datasets in the form of real ones.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

/// Returns rows in MMLU-Pro's columns: 70 worked examples, then the items. With four `sentences` of context, they are about
/// as long as real ones.
#[must_use]
pub fn ten_option_items(count: usize, sentences: usize) -> String {
    const CATEGORIES: [&str; 14] = [
        "biology",
        "business",
        "chemistry",
        "computer science",
        "economics",
        "engineering",
        "health",
        "history",
        "law",
        "math",
        "other",
        "philosophy",
        "physics",
        "psychology",
    ];
    let mut rows = String::new();
    for number in 0..70 + count {
        let example = number < 70;
        let cot =
            if example { "A: Let's think step by step. It follows at once. The answer is (B)." } else { "" };
        let options: Vec<String> = (0..10).map(|option| format!("{} units", number + option)).collect();
        let context =
            "The quantities are given in the usual units and nothing else changes. ".repeat(sentences);
        let row = json!({
            "question_id": number,
            "question": format!("[item {number}] {context}Which of these is one more than {number}?"),
            "options": options, "answer": "B", "answer_index": 1, "cot_content": cot,
            "category": CATEGORIES[number % 14], "src": "load",
        });
        let _ = writeln!(rows, "{row}");
    }
    rows
}

/// Returns the command that asks the model at `base_url` about such items from a file, in `dir`: data in `data`, its results in
/// `out`.
#[must_use]
pub fn run_of_items(bench: &Path, base_url: &str, dataset: &Path, dir: &Path) -> Command {
    let mut run = Command::new(bench);
    run.args(["run", "--json", "--model", "openai-compatible/load", "--benchmark", "mmlu_pro"])
        .args(["--base-url", base_url])
        .arg("--dataset")
        .arg(format!("mmlu_pro={}", dataset.display()))
        .arg("--data-dir")
        .arg(dir.join("data"))
        .arg("--out")
        .arg(dir.join("out"))
        .current_dir(dir)
        .stderr(Stdio::null());
    run
}
