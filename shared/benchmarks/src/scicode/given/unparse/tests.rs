use proptest::prelude::*;
use serde_json::Value;

use super::*;

/// Returns cases made with `ast.unparse` of CPython 3.11 from texts written for this project.
fn cases() -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/vectors/scicode_unparse.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn definitions_are_written_as_python_writes_them() {
    let cases = cases();
    assert!(cases.len() >= 20);
    for case in cases {
        let [name, text] = ["name", "text"].map(|key| case[key].as_str().unwrap());
        assert_eq!(definition(text, name).as_deref(), case["expected"].as_str(), "{text}");
    }
}

#[test]
fn missing_definitions_are_not_found() {
    assert_eq!(definition("x = 1\n", "f"), None);
    assert_eq!(definition("async def f(): pass\n", "f"), None);
}

#[test]
fn unsupported_syntax_is_cut_out_by_lines() {
    let text = "class A:\n    def f(self):\n        match self:\n            case 1: pass\n\n    def g(self): pass\n";
    assert_eq!(definition(text, "f").unwrap(), "def f(self):\n    match self:\n        case 1: pass");
    assert_eq!(definition("not python at all (", "f").unwrap(), "not python at all (");
}

#[test]
fn formatted_literals_stay_unchanged() {
    let text = "def f(k):\n    # c\n    print(f\"{k}:\\n\", f'{k[\"a\"]}')\n";
    assert_eq!(definition(text, "f").unwrap(), "def f(k):\n    print(f'{k}:\\n', f'{k[\"a\"]}')");
}

#[test]
fn nesting_depth_is_limited() {
    for text in [
        format!("def f():\n    return {}1{}\n", "(".repeat(5000), ")".repeat(5000)),
        format!("def f():\n    return {}1{}\n", "[*".repeat(5000), "]".repeat(5000)),
        format!("def f():\n    return {}1\n", "not ".repeat(5000)),
        format!("def f():\n    return {}1\n", "-".repeat(5000)),
        format!("def f():\n    return 1{}\n", "**1".repeat(5000)),
        (0..3000).map(|at| format!("{}if x:\n", " ".repeat(at))).collect::<String>(),
    ] {
        assert!(definition(&text, "f").is_some());
    }
}

proptest! {
    #[test]
    fn arbitrary_texts_are_read(text in "[a-f0-9 \\n\t(){}\\[\\]:=,.'\"\\\\#*+-]{0,80}", tail in any::<String>()) {
        definition(&text, "f");
        definition(&format!("def f():\n    {text}{tail}"), "f");
    }
}
