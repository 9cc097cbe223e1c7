use bench_items::{Layout as _, Row};
use serde_json::{Value, json};

use super::*;
use crate::{MmluPro, SciCode};

fn row(value: Value) -> Row {
    value.as_object().cloned().unwrap()
}

/// Returns a problem of three steps. The named steps have the dataset's own code.
fn problem(with_code: &[&str]) -> Item {
    let step = |name: &str| {
        let code =
            with_code.contains(&name).then(|| format!("def f{}():\n    return 'own {name}'", &name[3..]));
        json!({
            "step_number": name, "step_description_prompt": format!("Do {name}."), "step_background": "",
            "function_header": format!("def f{}():", &name[3..]), "test_cases": ["assert True"],
            "return_line": "    return x", "ground_truth_code": code,
        })
    };
    let row = row(json!({
        "problem_id": 900, "required_dependencies": "", "sub_steps": [step("900.1"), step("900.2"), step("900.3")],
    }));
    SciCode::INSPECT.item(0, row).unwrap().unwrap()
}

fn text(question: &QuestionPreview) -> String {
    question.prompt.as_ref().map(Prompt::as_text).unwrap_or_default()
}

#[test]
fn later_steps_show_the_datasets_own_code_if_available() {
    let material = Material::default();
    let all =
        preview_questions(&SciCode::INSPECT, &problem(&["900.1", "900.2", "900.3"]), &material).unwrap();
    let names: Vec<&str> = all.iter().filter_map(|question| question.step.as_deref()).collect();
    assert_eq!(names, ["900.1", "900.2", "900.3"]);
    assert_eq!(all.iter().map(|question| question.is_later).collect::<Vec<_>>(), [false, true, true]);
    for (index, question) in all.iter().enumerate() {
        assert_eq!(text(question).contains("own 900.1"), index > 0);
        assert_eq!(text(question).contains("own 900.2"), index > 1);
        assert!(!text(question).contains("own 900.3"));
    }

    // Without code for the first step no later prompt can be predicted, even if a later step has code.
    let some = preview_questions(&SciCode::INSPECT, &problem(&["900.2"]), &material).unwrap();
    assert_eq!(
        some.iter().map(|question| question.prompt.is_some()).collect::<Vec<_>>(),
        [true, false, false]
    );
    assert_eq!(some.iter().filter_map(|question| question.step.as_deref()).collect::<Vec<_>>(), names);
    assert_eq!(some[0], all[0]);
}

#[test]
fn a_single_question_is_the_prompt() {
    let item = MmluPro
        .item(
            0,
            row(json!({
                "question": "Why?", "options": ["a", "b"], "answer": "A", "answer_index": 0, "category": "math",
                "cot_content": "", "question_id": 7, "src": "own",
            })),
        )
        .unwrap()
        .unwrap();
    let mut material = Material::default();
    // The few-shot examples are missing.
    assert_eq!(
        preview_questions(&MmluPro, &item, &material).unwrap_err(),
        MmluPro.prompt(&item, &material).unwrap_err()
    );
    for name in MmluPro.support_names(&item) {
        let shot =
            json!({ "question": "Shot?", "options": ["x"], "cot_content": "A: So (A).", "category": "math" });
        material.support.insert(name, json!([shot]).into());
    }
    let prompt = MmluPro.prompt(&item, &material).unwrap();
    let expected = QuestionPreview { step: None, prompt: Some(prompt.clone()), is_later: false };
    assert_eq!(preview_questions(&MmluPro, &item, &material).unwrap(), [expected]);
    let step = Step { name: String::new(), prompt, answer: Answer::local("A") };
    assert_eq!(next_question(&MmluPro, &item, &material, &[step]).unwrap(), None);
}
