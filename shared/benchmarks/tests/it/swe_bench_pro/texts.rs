//! Texts of instances, against recorded results of the official functions.

use bench_benchmarks::InstanceImage;

use super::*;

fn vectors() -> Value {
    serde_json::from_str(&fs::read_to_string(format!("{MINI}/text_vectors.json")).unwrap()).unwrap()
}

/// Returns the entry script of an item.
fn entry_script(item: &Item) -> String {
    let verification = protocol().verification(item, "", &mini_scripts()).unwrap();
    verification.files.iter().find(|file| file.path == "entryscript.sh").unwrap().text.clone()
}

#[test]
fn images_are_named_by_the_rules() {
    let vectors = vectors();
    let cases = vectors["image_uri"].as_array().unwrap();
    assert_eq!(cases.len(), 9);
    for case in cases {
        let (id, repo) = (case["instance_id"].as_str().unwrap(), case["repo"].as_str().unwrap());
        let expected = case["image"].as_str().unwrap();
        let tag = expected.rsplit_once(':').unwrap().1;
        for own in ["", tag] {
            let item = mini_with(&[("instance_id", id), ("repo", repo), ("dockerhub_tag", own)]);
            let InstanceImage::Pull { reference, platform } = protocol().image(&item).unwrap() else {
                panic!("{id}")
            };
            assert_eq!((reference.as_str(), platform), (expected, "linux/amd64"));
        }
    }
}

#[test]
fn an_image_of_the_dataset_wins_and_is_noted() {
    let item = mini_with(&[("dockerhub_tag", "minishop.other")]);
    let InstanceImage::Pull { reference, .. } = protocol().image(&item).unwrap() else { panic!() };
    assert_eq!(reference, "jefzda/sweap-images:minishop.other");
    let verdict = protocol().grade(&item, "", &VerificationReport::default());
    assert_eq!(verdict.detail["image"], reference);
    assert!(
        verdict.detail["image_by_rules"]
            .as_str()
            .unwrap()
            .ends_with("00e09b984d694236f5c247658853ef83475bbf51")
    );
    for bad in ["-v", "a b", "a;b", "x/../y:z", "--privileged"] {
        let problem = protocol().image(&mini_with(&[("dockerhub_tag", bad), ("repo", "a/b")]));
        let is_refused = match problem {
            Err(problem) => problem.to_string().contains("no name of an image"),
            // A tag follows the repository's name, so that it can't be an option.
            Ok(InstanceImage::Pull { reference, .. }) => reference.starts_with("jefzda/sweap-images:-"),
            Ok(other) => panic!("{other:?}"),
        };
        assert!(is_refused, "{bad}");
    }
}

#[test]
fn selected_tests_are_joined() {
    let vectors = vectors();
    let cases = vectors["selected"].as_array().unwrap();
    assert_eq!(cases.len(), 5);
    for case in cases {
        let list = case["selected_test_files_to_run"].as_str().unwrap();
        let script = entry_script(&mini_with(&[("selected_test_files_to_run", list)]));
        let joined = case["joined"].as_str().unwrap();
        let line = format!(
            "\nbash /workspace/run_script.sh {joined} > /workspace/stdout.log 2> /workspace/stderr.log\n"
        );
        assert!(script.contains(&line), "{script}");
    }
}

#[test]
fn only_the_last_line_of_the_setup_is_used() {
    let vectors = vectors();
    let cases = vectors["before_repo_set_cmd"].as_array().unwrap();
    assert_eq!(cases.len(), 4);
    for case in cases {
        let commands = case["before_repo_set_cmd"].as_str().unwrap();
        let script = entry_script(&mini_with(&[("before_repo_set_cmd", commands)]));
        let used = case["line_used"].as_str().unwrap();
        assert!(script.contains(&format!("/workspace/patch.diff\n{used}\nbash /workspace/")), "{script}");
    }
}

#[test]
fn the_agent_gets_statement_requirements_and_interface() {
    let text = protocol().instruction(&item(mini_row())).unwrap();
    assert_eq!(text, vectors()["problem_statement"].as_str().unwrap());
    let prompt = benchmark().prompt(&item(mini_row()), &Default::default()).unwrap();
    assert_eq!(prompt.messages.last().unwrap().content, text);
}

#[test]
fn the_entry_script_has_the_official_commands() {
    let candidates: Value =
        serde_json::from_str(&fs::read_to_string(format!("{MINI}/candidates.json")).unwrap()).unwrap();
    let expected: Vec<&str> = candidates["entryscript_command_lines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line.as_str().unwrap())
        .collect();
    let script = entry_script(&item(mini_row()));
    assert_eq!(script.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn line_ends_of_scripts_are_those_of_unix() {
    let text = "#!/bin/bash\r\necho\r";
    let names = benchmark().official_files().unwrap().files.iter().map(|file| file.name);
    let files = names.map(|name| (name.to_owned(), text.to_owned())).collect::<BTreeMap<_, _>>();
    let scripts = InstanceScripts::from_files(&files).unwrap();
    assert_eq!(scripts.run_script, "#!/bin/bash\necho\n");
    let missing = InstanceScripts::from_files(&BTreeMap::new()).unwrap_err().to_string();
    assert!(missing.contains("`run_script.sh`"), "{missing}");
}

#[test]
fn a_damaged_row_is_reported_as_its_own_item() {
    for (column, value, part) in [
        ("fail_to_pass", "[\"a\"", "column `fail_to_pass`"),
        ("selected_test_files_to_run", "7", "column `selected_test_files_to_run`"),
        ("base_commit", "main; rm -rf /", "hexadecimal"),
    ] {
        let item = mini_with(&[(column, value)]);
        let problem = protocol().instruction(&item).unwrap_err().to_string();
        assert!(problem.contains(part), "{problem}");
        assert!(protocol().preparation(&item).is_err());
        assert!(benchmark().missing_oracle(&item).unwrap().contains(part));
        assert_eq!(protocol().grade(&item, "", &VerificationReport::default()).score, None);
    }
}
