use super::*;
use crate::inputs::{solution_files, test_files, workdir_files};
use crate::path::TaskPath;
use crate::tree::TreeBuilder;

fn tree(files: &[(&str, &str)]) -> Tree {
    let mut builder = TreeBuilder::default();
    for (path, content) in files {
        builder.add(&TaskPath::new(path).unwrap(), None, &mut content.as_bytes()).unwrap();
    }
    builder.finish()
}

/// Harbor task with this configuration below a folder, with these files in addition or instead.
fn harbor_task(folder: &str, config: &str, extra: &[(&str, &str)]) -> Tree {
    let usual = [
        ("task.toml", config),
        ("instruction.md", "Do it."),
        ("environment/Dockerfile", "FROM debian:12\n"),
        ("tests/test.sh", "echo 1 > /logs/verifier/reward.txt\n"),
        ("solution/solve.sh", "true\n"),
    ];
    let kept = usual.iter().filter(|(path, _)| !extra.iter().any(|(other, _)| other == path));
    let files: Vec<(String, &str)> =
        kept.chain(extra).map(|(path, content)| (format!("{folder}{path}"), *content)).collect();
    tree(&files.iter().map(|(path, content)| (path.as_str(), *content)).collect::<Vec<_>>())
}

fn admitted(tree: Tree) -> Result<AdmittedTask, Refusal> {
    admit(tree, &AdmissionLimits::default())
}

fn code(tree: Tree) -> &'static str {
    admitted(tree).unwrap_err().code()
}

const TB1: [(&str, &str); 5] = [
    ("task.yaml", "instruction: Do it.\ndifficulty: easy\n"),
    ("docker-compose.yaml", "services:\n  client:\n    build:\n      dockerfile: Dockerfile\n"),
    ("Dockerfile", "FROM debian:12\n"),
    ("run-tests.sh", "pytest -rA\n"),
    ("tests/test_outputs.py", ""),
];

#[test]
fn tasks_are_found_at_the_root_and_in_folders() {
    let root = admitted(harbor_task("", "", &[])).unwrap();
    assert_eq!((root.folder.as_str(), root.name()), ("", None));
    for (folder, name) in [("fix-it/", "fix-it"), ("repo-main/fix-it/", "fix-it")] {
        let task = admitted(harbor_task(folder, "", &[])).unwrap();
        assert_eq!((task.name(), task.hash), (Some(name), root.hash));
        assert!(task.tree.has("task.toml"));
    }
    let named = admitted(harbor_task("fix-it/", "[task]\nname = 'org/other'", &[])).unwrap();
    assert_eq!(named.name(), Some("org/other"));
    let other = admitted(tree(&TB1)).unwrap();
    assert_eq!(other.task.format, TaskFormat::TerminalBench1);
    // A migrated task may keep its old configuration, and fixtures may contain others.
    let both = [("task.yaml", "x"), ("tests/fixture/task.toml", "x")];
    assert!(matches!(admitted(harbor_task("", "", &both)).unwrap().task.format, TaskFormat::Harbor { .. }));
}

#[test]
fn uploads_without_exactly_one_task_are_refused() {
    assert_eq!(code(tree(&[])), "no_task");
    assert_eq!(code(tree(&[("README.md", "")])), "no_task");
    assert_eq!(code(harbor_task("a/b/c/", "", &[])), "no_task");
    assert_eq!(code(tree(&[("a/task.toml", ""), ("b/task.yaml", "")])), "several_tasks");
    let mut files: Vec<(&str, &str)> = vec![("README.md", "outside")];
    let inner: Vec<(String, &str)> = TB1.iter().map(|(path, text)| (format!("t/{path}"), *text)).collect();
    files.extend(inner.iter().map(|(path, text)| (path.as_str(), *text)));
    let refusal = admitted(tree(&files)).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "`README.md`: the file is outside the task's folder `t`; move it into the folder or leave it out"
    );
}

#[test]
fn demands_above_the_limits_are_refused() {
    for (config, code_expected, line) in [
        ("[environment]\ncpus = 17", "above_limit", 2),
        ("[environment]\nmemory = '65G'", "above_limit", 2),
        ("[environment]\nstorage_mb = 1000000", "above_limit", 2),
        ("[environment]\nbuild_timeout_sec = 7201", "above_limit", 2),
        ("[agent]\ntimeout_sec = 1e6", "above_limit", 2),
        ("[verifier]\ntimeout_sec = 1e6", "above_limit", 2),
        ("[[verifier.collect]]\ncommand = 'x'\ntimeout_sec = 1e6", "above_limit", 3),
        ("[environment.healthcheck]\ncommand = 'x'\ninterval_sec = 1e6", "above_limit", 3),
        ("[environment]\ngpus = 1", "unsupported_demand", 2),
        ("[environment]\ntpu = {type = 'v4', topology = '2x2'}", "unsupported_demand", 2),
        ("[environment]\nos = 'Windows'", "unsupported_demand", 2),
        ("[verifier.environment]\nos = 'windows'", "unsupported_demand", 2),
        ("[agent]\nnetwork_mode = 'allowlist'\nallowed_hosts = ['pypi.org']", "unsupported_demand", 2),
        ("artifacts = [{source = '/x', service = 'db'}]", "compose_service_missing", 1),
        ("[[verifier.collect]]\ncommand = 'x'\nservice = 'db'", "compose_service_missing", 3),
    ] {
        let refusal = admitted(harbor_task("", config, &[])).unwrap_err();
        assert_eq!(refusal.code(), code_expected, "{config}");
        assert_eq!(refusal.place.unwrap().line, Some(line), "{config}");
    }
    let limits = AdmissionLimits { has_allowlists: true, ..AdmissionLimits::default() };
    let config = "[agent]\nnetwork_mode = 'allowlist'\nallowed_hosts = ['pypi.org']";
    assert!(admit(harbor_task("", config, &[]), &limits).is_ok());
    let refusal = admitted(harbor_task("", "[environment]\ncpus = 17", &[])).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "`task.toml` line 2: `environment.cpus` is 17 processors, more than the 16 processors that this system allows; lower it"
    );
}

#[test]
fn compose_files_are_checked_at_upload() {
    let compose = |text| {
        harbor_task(
            "",
            "artifacts = [{source = '/x', service = 'db'}]",
            &[("environment/docker-compose.yaml", text)],
        )
    };
    assert!(admitted(compose("services:\n  main: {}\n  db: {image: 'postgres:17'}\n")).is_ok());
    assert_eq!(code(compose("services:\n  db: {privileged: true}\n")), "compose_value_not_allowed");
    assert_eq!(code(compose("services: [")), "invalid_syntax");
    assert_eq!(code(compose("services: {}\n")), "compose_service_missing");
    let mut files = TB1;
    files[1].1 = "services:\n  app: {image: x}\n";
    assert_eq!(code(tree(&files)), "compose_service_missing");
    files[1].1 = "services:\n  client:\n    image: x\n    volumes_from: [y]\n";
    let refusal = admitted(tree(&files)).unwrap_err();
    assert!(refusal.to_string().starts_with("`docker-compose.yaml` line 4: service `client`"), "{refusal}");
}

#[test]
fn excluded_scripts_are_refused() {
    assert_eq!(code(harbor_task("", "", &[("tests/.harborignore", "*.sh")])), "ignored_file");
    assert_eq!(code(harbor_task("", "", &[("solution/.harborignore", "solve*")])), "ignored_file");
}

#[test]
fn files_for_containers_are_selected() {
    let task = admitted(harbor_task(
        "",
        "",
        &[("tests/.harborignore", "*.pyc"), ("tests/a.pyc", ""), ("tests/d/a.py", "")],
    ))
    .unwrap();
    let step = &task.task.steps[0];
    let files = test_files(&task.tree, step).unwrap();
    assert_eq!(files.keys().collect::<Vec<_>>(), ["d/a.py", "test.sh"]);
    assert_eq!(solution_files(&task.tree, step).unwrap()["solve.sh"].as_str(), "solution/solve.sh");
    assert!(workdir_files(&task.tree, step).is_empty());

    let multi = [
        ("steps/one/instruction.md", "First."),
        ("steps/one/tests/test.sh", "own"),
        ("steps/one/workdir/setup.sh", ""),
        ("tests/shared.py", ""),
    ];
    let task = admitted(harbor_task("", "[[steps]]\nname = 'one'", &multi)).unwrap();
    let step = &task.task.steps[0];
    let files = test_files(&task.tree, step).unwrap();
    assert_eq!(files["test.sh"].as_str(), "steps/one/tests/test.sh");
    assert_eq!(files["shared.py"].as_str(), "tests/shared.py");
    assert_eq!(workdir_files(&task.tree, step).keys().collect::<Vec<_>>(), ["setup.sh"]);

    let task = admitted(tree(&TB1)).unwrap();
    let files = test_files(&task.tree, &task.task.steps[0]).unwrap();
    assert_eq!(files.keys().collect::<Vec<_>>(), ["run-tests.sh", "test_outputs.py"]);
}
