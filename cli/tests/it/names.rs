//! Names of benchmarks and groups, as users type them.

use crate::support::TestDir;

#[test]
fn benchmarks_and_groups_are_found_by_every_name() {
    let dir = TestDir::new();
    let demo =
        dir.bench(&["run", "--model", "oracle", "--demo", "--benchmark", "mmlu_pro,IFEval", "--limit", "3"]);
    assert_eq!(demo.code, 0, "{}", demo.stderr);
    let items = |more: &[&str]| dir.json(&[&["runs", "latest", "--items", "--json"], more].concat());
    let by_id = items(&["--benchmark", "ifbench"]);
    assert_eq!(by_id.as_array().unwrap().len(), 3);
    for name in ["ifeval", "IFEval", "ifbench (IFEval)"] {
        assert_eq!(items(&["--benchmark", name]), by_id, "{name}");
    }

    let mmlu_pro = items(&["--benchmark", "mmlu_pro"]);
    let group = mmlu_pro[0]["group"].as_str().unwrap();
    let of_group = items(&["--group", group]);
    assert!(!of_group.as_array().unwrap().is_empty());
    assert_eq!(items(&["--group", &group.to_uppercase()]), of_group);

    let overlap =
        dir.bench(&["runs", "latest", "--items", "--benchmark", "ifeval", "--group", "punctuation"]);
    assert_eq!(overlap.code, 2, "{}", overlap.stderr);
    assert!(overlap.stderr.contains("ifbench (IFEval)"), "{}", overlap.stderr);
}
