use std::time::Duration;

use super::*;
use crate::model::{Grading, McpTransport, OperatingSystem, Solution, User, VerifierEnvironment};
use crate::network::NetworkPolicy;
use crate::tree::TreeBuilder;

fn tree(files: &[(&str, &str)]) -> Tree {
    let mut builder = TreeBuilder::default();
    for (path, content) in files {
        builder.add(&crate::path::TaskPath::new(path).unwrap(), None, &mut content.as_bytes()).unwrap();
    }
    builder.finish()
}

/// Single-step task with this configuration.
fn single(config: &str) -> Result<Task, Refusal> {
    read(&tree(&[
        ("task.toml", config),
        ("instruction.md", "# canary 1\n\nFix it.\n"),
        ("environment/Dockerfile", "FROM debian"),
        ("tests/test.sh", ""),
        ("solution/solve.sh", ""),
    ]))
}

/// Code and line of the refusal of a single-step task.
fn refused(config: &str) -> (&'static str, u32) {
    let refusal = single(config).unwrap_err();
    let line = refusal.place.as_ref().and_then(|place| place.line);
    (refusal.code(), line.unwrap_or(0))
}

#[test]
fn an_empty_configuration_has_the_documented_defaults() {
    let task = single("").unwrap();
    assert_eq!(task.format, TaskFormat::Harbor { schema_version: "1.4".to_owned() });
    let environment = &task.environment;
    assert_eq!(environment.build_timeout, Duration::from_secs(600));
    assert_eq!(environment.dockerfile.as_deref(), Some("environment/Dockerfile"));
    assert_eq!((environment.cpus, environment.memory_mb, environment.storage_mb), (None, None, None));
    assert_eq!((environment.service.as_str(), environment.os), ("main", OperatingSystem::Linux));
    assert_eq!(environment.network, NetworkPolicy::Public);
    let [step] = task.steps.as_slice() else { panic!("one step") };
    assert_eq!((step.name.as_deref(), step.instruction.as_str()), (None, "Fix it.\n"));
    assert_eq!((step.agent.timeout, step.verifier.timeout), (None, Duration::from_secs(600)));
    assert_eq!(step.verifier.script.as_deref(), Some("tests/test.sh"));
    assert_eq!(step.verifier.environment, VerifierEnvironment::Shared);
    assert_eq!(step.verifier.grading, Grading::RewardFile);
    let Some(Solution::Script { path, .. }) = &step.solution else { panic!("a script") };
    assert_eq!(path, "solution/solve.sh");
    assert!(!task.is_multi_step() && task.time_limit().is_none());
}

#[test]
fn every_field_is_read() {
    let task = single(
        r#"
        schema_version = "1.3"
        source = "hub"
        artifacts = ["/logs/x", {source = "/db", destination = "d/b", exclude = ["*.o"], service = "db"}]
        unknown = 1
        [metadata]
        difficulty = "hard"
        tags = ["a"]
        [task]
        name = "org/fix-it"
        version = "2"
        description = "d"
        keywords = ["k"]
        authors = [{name = "A", email = "a@b"}]
        [agent]
        timeout_sec = 900
        user = "agent"
        network_mode = "no-network"
        [verifier]
        timeout_sec = 1.5
        env = {KEY = "${KEY:-x}"}
        user = 0
        [[verifier.collect]]
        command = "dump"
        service = "db"
        [environment]
        build_timeout_sec = 60
        docker_image = "ghcr.io/org/image:1@sha256:00"
        cpus = 2
        memory_mb = 4096
        storage_mb = 10240.0
        network_mode = "allowlist"
        allowed_hosts = ["PyPI.org"]
        env = {A = "1"}
        workdir = "/app"
        mcp_servers = [{name = "m", transport = "http", url = "http://m"}]
        [environment.healthcheck]
        command = "true"
        retries = 5
        [solution]
        env = {TOKEN = "${TOKEN}"}
        "#,
    )
    .unwrap();
    assert_eq!(task.format, TaskFormat::Harbor { schema_version: "1.3".to_owned() });
    assert_eq!((task.name.as_deref(), task.version.as_deref()), (Some("org/fix-it"), Some("2")));
    assert_eq!(task.metadata["tags"], serde_json::json!(["a"]));
    let step = &task.steps[0];
    assert_eq!(step.agent.timeout, Some(Duration::from_secs(900)));
    assert_eq!(step.agent.user, Some(User::Name("agent".to_owned())));
    assert_eq!(step.agent.network, Some(NetworkPolicy::NoNetwork));
    assert_eq!(
        (step.verifier.timeout, step.verifier.user.clone()),
        (Duration::from_millis(1500), Some(User::Id(0)))
    );
    assert_eq!(
        (step.verifier.collect[0].service.as_str(), step.verifier.collect[0].timeout.as_secs()),
        ("db", 60)
    );
    assert_eq!(
        step.artifacts.iter().map(|artifact| artifact.kept_path()).collect::<Vec<_>>(),
        ["logs/x", "d/b"]
    );
    let environment = &task.environment;
    assert_eq!(
        (environment.cpus, environment.memory_mb, environment.storage_mb),
        (Some(2.0), Some(4096), Some(10240))
    );
    assert!(
        matches!(&environment.network, NetworkPolicy::Allowlist(hosts) if hosts[0].to_string() == "pypi.org")
    );
    let check = environment.healthcheck.as_ref().unwrap();
    assert_eq!((check.retries, check.interval.as_secs(), check.timeout.as_secs()), (5, 5, 30));
    assert!(matches!(environment.mcp_servers[0].transport, McpTransport::StreamableHttp { .. }));
    assert_eq!(task.variables().flat_map(|variables| variables.required()).collect::<Vec<_>>(), ["TOKEN"]);
    assert_eq!(task.time_limit(), Some(Duration::from_millis(961_500)));
}

#[test]
fn old_versions_are_read() {
    let task = single(
        "version = '1.0'\n[environment]\nmemory = '2G'\nstorage = '10G'\nallow_internet = false\n[metadata]\n",
    )
    .unwrap();
    assert_eq!(task.format, TaskFormat::Harbor { schema_version: "1.0".to_owned() });
    assert_eq!((task.environment.memory_mb, task.environment.storage_mb), (Some(2048), Some(10240)));
    assert_eq!(task.environment.network, NetworkPolicy::NoNetwork);
    let newer = single(
        "[environment]\nallow_internet = false\nnetwork_mode = 'public'\nmemory = '1G'\nmemory_mb = 1024",
    );
    assert_eq!(newer.unwrap().environment.network, NetworkPolicy::Public);
    assert_eq!(refused("[environment]\nmemory_mb = 1\nmemory = '1G'"), ("conflicting_fields", 3));
}

#[test]
fn wrong_fields_are_refused_with_their_line() {
    for (config, code, line) in [
        ("a = ", "invalid_syntax", 1),
        ("[task]", "missing_field", 1),
        ("[task]\nname = 'x'", "invalid_value", 2),
        ("[task]\nname = 'org/a..b'", "invalid_value", 2),
        ("[task]\nname = 'org/-x'", "invalid_value", 2),
        ("metadata = 1", "wrong_type", 1),
        ("[agent]\ntimeout_sec = '900'", "wrong_type", 2),
        ("[agent]\ntimeout_sec = -1", "invalid_value", 2),
        ("[agent]\ntimeout_sec = nan", "invalid_value", 2),
        ("[agent]\ntimeout_sec = 0", "invalid_value", 2),
        ("[agent]\ntimeout_sec = 1e300", "invalid_value", 2),
        ("[agent]\nuser = '--privileged'", "invalid_value", 2),
        ("[agent]\nuser = -1", "invalid_value", 2),
        ("[agent]\nuser = []", "wrong_type", 2),
        ("[agent]\nallowed_hosts = ['a.b']", "conflicting_fields", 2),
        ("[environment]\nnetwork_mode = 'host'", "invalid_value", 2),
        ("[environment]\nnetwork_mode = 'allowlist'\nallowed_hosts = ['http://x']", "invalid_value", 3),
        ("[environment]\nnetwork_mode = 'public'\nallowed_hosts = ['a.b']", "conflicting_fields", 3),
        ("[environment]\ndocker_image = '-v/:/x'", "invalid_image", 2),
        ("[environment]\ndocker_image = 'a b'", "invalid_image", 2),
        ("[environment]\nos = 'plan9'", "invalid_value", 2),
        ("[environment]\nworkdir = 'app'", "invalid_value", 2),
        ("[environment]\ncpus = 0", "invalid_value", 2),
        ("[environment]\nmemory_mb = 1.5", "wrong_type", 2),
        ("[environment]\nenv = {A = 1}", "wrong_type", 2),
        ("[environment]\nenv = {'A=B' = ''}", "invalid_value", 2),
        ("[environment]\ntpu = {type = 'v4', topology = '2'}", "invalid_value", 2),
        ("[environment]\nmcp_servers = [{name = 'm'}]", "missing_field", 2),
        ("[environment.healthcheck]\nretries = 3", "missing_field", 1),
        ("[verifier]\nenvironment_mode = 'shared'\n[verifier.environment]", "conflicting_fields", 3),
        ("[[verifier.collect]]\ncommand = 'x'\nservice = '-x'", "invalid_value", 3),
        ("artifacts = ['/a/../b']", "invalid_value", 1),
        ("artifacts = [{source = '/a', destination = '/b'}]", "invalid_value", 1),
        ("artifacts = [{source = '/a', destination = '../b'}]", "invalid_value", 1),
        ("artifacts = [{source = '/a', destination = 'manifest.json'}]", "invalid_value", 1),
        ("artifacts = [{source = 'a', service = 'db'}]", "invalid_value", 1),
        ("artifacts = [1]", "wrong_type", 1),
        ("multi_step_reward_strategy = 'max'", "invalid_value", 1),
    ] {
        assert_eq!(refused(config), (code, line), "{config}");
    }
}

#[test]
fn missing_files_are_named() {
    let all =
        [("task.toml", ""), ("instruction.md", "x"), ("environment/Dockerfile", ""), ("tests/test.sh", "")];
    assert!(read(&tree(&all)).is_ok());
    for (missing, code, file) in [
        ("task.toml", "missing_file", "task.toml"),
        ("instruction.md", "missing_file", "instruction.md"),
        ("environment/Dockerfile", "no_environment", "task.toml"),
        ("tests/test.sh", "missing_file", "tests/test.sh"),
    ] {
        let files: Vec<_> = all.iter().filter(|(path, _)| *path != missing).copied().collect();
        let refusal = read(&tree(&files)).unwrap_err();
        assert_eq!((refusal.code(), refusal.place.unwrap().file.as_str()), (code, file));
    }
    let mut files = all;
    files[1].1 = "<!-- canary -->\n\n";
    assert_eq!(read(&tree(&files)).unwrap_err().code(), "empty_file");
}

const MULTI: &str = "
multi_step_reward_strategy = 'final'
artifacts = ['/a']
[agent]
timeout_sec = 100
user = 'a'
[verifier]
timeout_sec = 50
env = {A = '1', B = '1'}
[solution]
env = {S = '1'}
[environment]
docker_image = 'image'
[[steps]]
name = 'one'
min_reward = 0.5
artifacts = ['/b']
[steps.agent]
timeout_sec = 10
[steps.verifier]
env = {B = '2'}
[steps.verifier.environment]
os = 'windows'
[steps.healthcheck]
command = 'true'
[[steps]]
name = 'two'
min_reward = {reward = 1, style = 0.2}
";

#[test]
fn steps_inherit_from_the_task() {
    let files = [
        ("task.toml", MULTI),
        ("steps/one/instruction.md", "First."),
        ("steps/one/tests/test.sh", ""),
        ("steps/one/tests/Dockerfile", ""),
        ("steps/two/instruction.md", "Second."),
        ("steps/two/solution/solve.sh", ""),
        ("solution/solve.sh", ""),
        ("tests/test.sh", ""),
    ];
    let task = read(&tree(&files)).unwrap();
    let [one, two] = task.steps.as_slice() else { panic!("two steps") };
    assert!(task.is_multi_step() && task.reward_strategy == RewardStrategy::Final);
    assert_eq!((one.instruction.as_str(), two.instruction.as_str()), ("First.", "Second."));
    assert_eq!(
        (one.agent.timeout, two.agent.timeout),
        (Some(Duration::from_secs(10)), Some(Duration::from_secs(100)))
    );
    assert_eq!(one.agent.user, Some(User::Name("a".to_owned())));
    assert_eq!((one.artifacts.len(), two.artifacts.len()), (2, 1));
    assert_eq!((one.min_rewards["reward"], two.min_rewards["style"]), (0.5, 0.2));
    assert_eq!(one.verifier.env.resolve(&BTreeMap::new()).unwrap()["B"], "2");
    assert_eq!(two.verifier.env.resolve(&BTreeMap::new()).unwrap()["B"], "1");
    let VerifierEnvironment::Separate { environment, has_tests: true } = &one.verifier.environment else {
        panic!("an image of its own: {:?}", one.verifier.environment);
    };
    assert_eq!(environment.dockerfile.as_deref(), Some("steps/one/tests/Dockerfile"));
    assert_eq!((environment.image.as_deref(), environment.os), (None, OperatingSystem::Windows));
    assert_eq!(one.verifier.script, None);
    assert_eq!(two.verifier.environment, VerifierEnvironment::Shared);
    assert_eq!(two.verifier.script.as_deref(), Some("tests/test.sh"));
    let path = |step: &crate::model::Step| match &step.solution {
        Some(Solution::Script { path, .. }) => path.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        (path(one).as_str(), path(two).as_str()),
        ("solution/solve.sh", "steps/two/solution/solve.sh")
    );
    assert_eq!(task.environments().count(), 2);
}

#[test]
fn a_separate_verifier_can_use_the_agents_definition() {
    let task = single("[verifier]\nenvironment_mode = 'separate'\n[environment]\nmemory_mb = 7").unwrap();
    let VerifierEnvironment::Separate { environment, has_tests: false } = &task.steps[0].verifier.environment
    else {
        panic!("{:?}", task.steps[0].verifier.environment);
    };
    assert_eq!((environment.folder.as_str(), environment.memory_mb), ("environment", Some(7)));
    let own = single("[verifier.environment]\ndocker_image = 'tests:1'").unwrap();
    assert!(matches!(&own.steps[0].verifier.environment,
        VerifierEnvironment::Separate { environment, has_tests: true } if environment.image.as_deref() == Some("tests:1")));
}

#[test]
fn names_of_steps_are_folders_everywhere() {
    for name in [
        "", " ", ".", "..", "a/b", "a\\\\b", "a:b", "a.", "a ", "CON", "nul.txt", "com1", "LPT9.x",
        "a\\u0001",
    ] {
        assert_eq!(refused(&format!("[[steps]]\nname = \"{name}\"")), ("invalid_value", 2), "{name}");
    }
    let twice = "[[steps]]\nname = 'a'\n[[steps]]\nname = 'A'";
    let files = [
        ("task.toml", twice),
        ("environment/Dockerfile", ""),
        ("steps/a/instruction.md", "x"),
        ("tests/test.sh", ""),
    ];
    let refusal = read(&tree(&files)).unwrap_err();
    assert_eq!((refusal.code(), refusal.place.unwrap().line), ("duplicate_key", Some(4)));
}

#[test]
fn any_configuration_ends_in_a_task_or_a_refusal() {
    let keys = "task|agent|verifier|environment|steps|artifacts|healthcheck|env|name|user|timeout_sec|cpus|min_reward";
    let line = format!(
        "(\\[\\[({keys})(\\.({keys}))?\\]\\]|\\[({keys})(\\.({keys}))?\\]|({keys}) = (1|-1.5|'x'|\\[\\]|\\{{\\}}|true))\n"
    );
    proptest::proptest!(|(config in format!("({line}){{0,8}}").as_str())| {
        let _ = single(&config);
    });
}

fn warnings_of(config: &str) -> Vec<String> {
    single(config).unwrap();
    warnings(&tree(&[("task.toml", config)]))
}

#[test]
fn compose_files_of_other_names_are_warned_of() {
    let files = [
        ("task.toml", ""),
        ("instruction.md", "Do it."),
        ("environment/Dockerfile", "FROM a\n"),
        ("environment/docker-compose.yml", "services: {}\n"),
        ("tests/test.sh", "true\n"),
    ];
    let tree = tree(&files);
    let task = read(&tree).unwrap();
    assert_eq!(
        ignored_files(&task, &tree),
        ["`environment/docker-compose.yml` is ignored: the format knows `docker-compose.yaml` only"]
    );
}

#[test]
fn keys_that_the_format_does_not_know_are_warned_of() {
    let config = r#"
        version = "1.0"
        [agent]
        timout_sec = 5
        [environment]
        memory = "2G"
        memori_mb = 1
        allow_internet = true
        [environment.env]
        ANYTHING = "x"
        [metadata]
        timout_sec = 5
        [metadata.deep]
        anything = 1
        [verifier.environment]
        build_timeout = 5
        [[verifier.collect]]
        command = "true"
        when = "always"
        [wholly_unknown]
        key = 1
    "#;
    assert_eq!(
        warnings_of(config),
        [
            "`task.toml` line 4: `agent.timout_sec` has no effect, since the format has no such key; did you mean \
             `timeout_sec`?",
            "`task.toml` line 7: `environment.memori_mb` has no effect, since the format has no such key; did you mean \
             `memory_mb`?",
            "`task.toml` line 16: `verifier.environment.build_timeout` has no effect, since the format has no such key; \
             did you mean `build_timeout_sec`?",
            "`task.toml` line 19: `verifier.collect[0].when` has no effect, since the format has no such key; remove it, or \
             move it to `[metadata]`",
            "`task.toml` line 20: `wholly_unknown` has no effect, since the format has no such key; remove it, or move it to \
             `[metadata]`",
        ]
    );
    for (version, is_known) in [
        ("1.0", true),
        ("1.4", true),
        ("1.4.1", true),
        ("1", true),
        ("1.5", false),
        ("9.0", false),
        ("x", false),
    ] {
        for key in ["version", "schema_version"] {
            let found = warnings_of(&format!("{key} = \"{version}\""));
            assert_eq!(found.is_empty(), is_known, "{found:?}");
        }
    }
    let beginning = warnings_of("[verifier]\ntimeout = 5");
    assert!(beginning[0].ends_with("did you mean `timeout_sec`?"), "{beginning:?}");
    let old =
        tree(&[("task.yaml", "instruction: x\ndifficulty: hard\nmax_tests_timeout_sec: 5\nwhatever: 1\n")]);
    assert_eq!(
        old_warnings(&old),
        [
            "`task.yaml` line 3: `max_tests_timeout_sec` has no effect, since the format has no such key; did you mean \
             `max_test_timeout_sec`?",
            "`task.yaml` line 4: `whatever` has no effect, since the format has no such key; remove it",
        ]
    );
    let many: String = (0..100).map(|number| format!("key_{number:03} = 1\n")).collect();
    assert_eq!(warnings_of(&many).len(), 20, "their number is bounded");
    let long = warnings_of(&format!("\"\\u001b{}\" = 1", "x".repeat(500)));
    assert!(long[0].len() < 300 && !long[0].contains('\u{1b}'), "{long:?}");
}

/// A key that is read is known: a configuration with all of them has no warning.
#[test]
fn keys_of_the_format_are_not_warned_of() {
    let config = r#"
        schema_version = "1.4"
        source = "hub"
        artifacts = ["/logs/x", { source = "/a", destination = "b", exclude = ["c"], service = "main" }]
        multi_step_reward_strategy = "mean"
        [task]
        name = "org/name"
        version = "1"
        description = "d"
        keywords = ["k"]
        authors = [{ name = "n", email = "e" }]
        [agent]
        timeout_sec = 5
        user = "root"
        network_mode = "public"
        [verifier]
        timeout_sec = 5
        user = 0
        network_mode = "public"
        environment_mode = "separate"
        env = { A = "b" }
        collect = [{ command = "true", service = "main", timeout_sec = 5, user = "root" }]
        [verifier.environment]
        docker_image = "debian:12"
        [environment]
        build_timeout_sec = 5
        docker_image = "debian:12"
        os = "linux"
        cpus = 1
        memory_mb = 1
        storage_mb = 1
        gpus = 0
        gpu_types = []
        network_mode = "public"
        allowed_hosts = []
        workdir = "/"
        skills_dir = "/s"
        mcp_servers = [{ name = "n", transport = "sse", url = "http://x" }]
        [environment.healthcheck]
        command = "true"
        interval_sec = 1
        timeout_sec = 1
        start_period_sec = 1
        start_interval_sec = 1
        retries = 1
        [solution]
        env = { A = "b" }
    "#;
    assert_eq!(warnings(&tree(&[("task.toml", config)])), Vec::<String>::new());
    let steps = "[[steps]]\nname = 'a'\nmin_reward = { reward = 1.0 }\nartifacts = ['/x']\n[steps.agent]\ntimeout_sec = 1\n\
                 [steps.verifier]\ntimeout_sec = 1\n[steps.healthcheck]\ncommand = 'x'\n";
    assert_eq!(warnings(&tree(&[("task.toml", steps)])), Vec::<String>::new());
}
