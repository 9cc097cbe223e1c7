//! Datasets whose correct answers a model server can compute: the text of an item contains its number.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use bench_tests::model_server::ModelRequest;
use serde_json::json;

const LETTERS: &str = "ABCDEFGHIJ";
const CATEGORIES: [&str; 2] = ["physics", "law"];

/// Writes a folder with this number of items in MMLU-Pro's columns, and a worked example per category.
pub(crate) fn mmlu_pro(dir: &Path, items: usize) -> PathBuf {
    let folder = dir.join(format!("mmlu-pro-{items}"));
    fs::create_dir_all(&folder).unwrap();
    let row = |number: usize, question: String, worked: &str| {
        let options: Vec<String> = (0..10).map(|option| format!("{option} apples")).collect();
        json!({
            "question_id": number, "question": question, "options": options,
            "answer": letter(number).to_string(), "answer_index": number % 10, "cot_content": worked,
            "category": CATEGORIES[number % CATEGORIES.len()], "src": "own",
        })
    };
    let (mut text, mut worked) = (String::new(), String::new());
    for number in 0..items {
        writeln!(text, "{}", row(number, format!("[item {number}] How many apples?"), "")).unwrap();
    }
    for number in 0..CATEGORIES.len() {
        let question = format!("How many apples are {number} apples?");
        writeln!(worked, "{}", row(number, question, "A: Count. The answer is (A).")).unwrap();
    }
    fs::write(folder.join("test.jsonl"), text).unwrap();
    fs::write(folder.join("validation.jsonl"), worked).unwrap();
    folder
}

/// Writes a file with this number of items in AIME 2025's columns. Their markers begin with `a`.
pub(crate) fn aime_2025(dir: &Path, items: usize) -> PathBuf {
    let file = dir.join(format!("aime-{items}.jsonl"));
    let rows = (0..items).map(|number| {
        let problem = format!("[item a{number}] What is {number} + 7?");
        json!({ "id": format!("I-{number}"), "problem": problem, "answer": (number + 7).to_string() })
            .to_string()
            + "\n"
    });
    fs::write(&file, rows.collect::<String>()).unwrap();
    file
}

/// Writes a file with this number of items in GPQA Diamond's columns. Their markers begin with `g`, and the correct
/// option says that it is correct.
pub(crate) fn gpqa_diamond(dir: &Path, items: usize) -> PathBuf {
    let file = dir.join(format!("gpqa-{items}.jsonl"));
    let rows = (0..items).map(|number| {
        json!({
            "Question": format!("[item g{number}] Which xylograph shows {number} marmosets beside the river?"),
            "Correct Answer": format!("right: {number}\n"), "Incorrect Answer 1": "one marmoset",
            "Incorrect Answer 2": "two marmosets", "Incorrect Answer 3": "three marmosets",
            "High-level domain": "Biology",
        })
        .to_string()
            + "\n"
    });
    fs::write(&file, rows.collect::<String>()).unwrap();
    file
}

/// Writes a file with this number of items in AA-Omniscience's columns. Their markers begin with `o`.
pub(crate) fn aa_omniscience(dir: &Path, items: usize) -> PathBuf {
    let file = dir.join(format!("omniscience-{items}.jsonl"));
    let rows = (0..items).map(|number| {
        json!({
            "question_id": number, "domain": "Law", "topic": "Own", "answer": format!("gold {number}"),
            "question": format!("[item o{number}] What is the gold of {number}?"),
        })
        .to_string()
            + "\n"
    });
    fs::write(&file, rows.collect::<String>()).unwrap();
    file
}

/// Writes a file with this number of items in LiveCodeBench's columns. Their markers begin with `l`. Each asks for a
/// program that adds the item's number to its input.
pub(crate) fn livecodebench(dir: &Path, items: usize) -> PathBuf {
    let file = dir.join(format!("livecodebench-{items}.jsonl"));
    let tests = |number: usize, inputs: [usize; 2]| {
        let tests = inputs.map(|input| {
            json!({ "input": format!("{input}\n"), "output": format!("{}\n", input + number), "testtype": "stdin" })
        });
        json!(tests).to_string()
    };
    let rows = (0..items).map(|number| {
        json!({
            "question_title": "Sum", "question_content": format!("[item l{number}] Read a number and add {number}."),
            "platform": "atcoder", "question_id": format!("own_{number}"), "contest_id": "own",
            "contest_date": "2024-08-01T00:00:00", "starter_code": "", "difficulty": "easy",
            "public_test_cases": tests(number, [1, 2]), "private_test_cases": tests(number, [10, 20]), "metadata": "{}",
        })
        .to_string()
            + "\n"
    });
    fs::write(&file, rows.collect::<String>()).unwrap();
    file
}

/// Writes a folder with this number of problems in SciCode's columns, each with three steps, and targets that can't
/// be read. The markers of step K begin with `sK-`.
pub(crate) fn scicode(dir: &Path, items: usize) -> PathBuf {
    let folder = dir.join(format!("scicode-{items}"));
    fs::create_dir_all(&folder).unwrap();
    let step = |number: usize, step: usize| {
        json!({
            "step_number": format!("{number}.{step}"), "step_background": "",
            "step_description_prompt": format!("[item s{step}-{number}] Add {step}."),
            "function_header": format!("def f{step}(x):\n    '''Adds {step}.'''"),
            "test_cases": [format!("assert f{step}(1) == {}", step + 1)], "return_line": "    return y",
        })
    };
    let rows = (1..=items).map(|number| {
        let steps: Vec<_> = (1..=SCICODE_STEPS).map(|at| step(number, at)).collect();
        json!({
            "problem_id": number.to_string(), "problem_name": "Own", "problem_description_main": "",
            "problem_background_main": "", "problem_io": "", "required_dependencies": "", "sub_steps": steps,
            "general_solution": "", "general_tests": [],
        })
        .to_string()
            + "\n"
    });
    fs::write(folder.join("problems_test.jsonl"), rows.collect::<String>()).unwrap();
    fs::write(folder.join("test_data.h5"), b"\x89HDF\r\n\x1a\nnothing more").unwrap();
    folder
}

/// Number of steps of each problem.
pub(crate) const SCICODE_STEPS: usize = 3;

fn letter(number: usize) -> char {
    LETTERS.chars().nth(number % 10).unwrap()
}

/// Returns the correct reply to an item of any dataset.
pub(crate) fn right_answer(item: &str) -> String {
    if let Some(number) = item.strip_prefix('l') {
        return format!("So:\n```python\nprint(int(input()) + {number})\n```");
    }
    if let Some(number) = item.strip_prefix('o') {
        return format!("It is gold {number}.");
    }
    match item.strip_prefix('a') {
        Some(number) => format!("It is \\boxed{{{}}}.", number.parse::<usize>().unwrap() + 7),
        None => format!("Let us see. The answer is ({}).", letter(item.parse().unwrap())),
    }
}

/// Returns an incorrect reply to an item.
pub(crate) fn wrong_answer(item: &str) -> String {
    match item.strip_prefix('a') {
        Some(number) => format!("It is \\boxed{{{}}}.", number.parse::<usize>().unwrap() + 8),
        None => format!("Let us see. The answer is ({}).", letter(item.parse::<usize>().unwrap() + 1)),
    }
}

/// Answers every fourth item incorrectly.
pub(crate) fn mostly_right_answer(request: &ModelRequest) -> String {
    if number(&request.item) % 4 == 3 { wrong_answer(&request.item) } else { right_answer(&request.item) }
}

/// Returns the number in an item's marker.
pub(crate) fn number(item: &str) -> usize {
    item.trim_start_matches(['a', 'l', 'o']).parse().unwrap()
}
