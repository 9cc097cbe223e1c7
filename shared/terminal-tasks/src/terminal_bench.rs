//! The format of Terminal-Bench 1: a folder with `task.yaml`.

use std::time::Duration;

use crate::instruction::strip_canary;
use crate::model::{
    AgentPhase, Author, Environment, Grading, Keystrokes, OperatingSystem, PaneParser, RewardStrategy,
    Solution, Step, Task, TaskFormat, Verifier, VerifierEnvironment,
};
use crate::network::NetworkPolicy;
use crate::node::{Fields, Node};
use crate::refusal::{ContentProblem, FormatProblem, Refusal};
use crate::tree::Tree;
use crate::variables::Variables;

/// Configuration file of the format.
pub const TASK_FILE: &str = "task.yaml";
const COMPOSE_FILE: &str = "docker-compose.yaml";
const TEST_SCRIPT: &str = "run-tests.sh";
const SOLUTION_SCRIPT: &str = "solution.sh";
const SOLUTION_KEYS: &str = "solution.yaml";
/// Service of the compose file in which the agent works.
const SERVICE: &str = "client";
const AGENT_TIMEOUT: Duration = Duration::from_secs(360);
const TEST_TIMEOUT: Duration = Duration::from_secs(60);
const BUILD_TIMEOUT: Duration = Duration::from_secs(600);
const KEYS_TIMEOUT: Duration = Duration::from_secs(180);
/// Maximum number of commands of a solution.
const KEYS_MAX: usize = 1000;
/// Fields that are metadata.
const METADATA: [&str; 6] = [
    "difficulty",
    "category",
    "tags",
    "estimated_duration_sec",
    "expert_time_estimate_min",
    "junior_time_estimate_min",
];

/// Returns the text for the agent in the configuration, without canary lines. `None` if there is none, as in some old
/// tasks.
///
/// # Errors
/// If the configuration is invalid.
pub fn instruction(config: &str) -> Result<Option<String>, Refusal> {
    let node = Node::parse_yaml(TASK_FILE, config.as_bytes())?;
    let text = Fields::root(TASK_FILE, &node)?.text("instruction")?;
    Ok(text.map(|text| strip_canary(text).to_owned()).filter(|text| !text.trim().is_empty()))
}

/// Reads a task. `instruction` is the text for the agent of a task whose configuration has none.
///
/// # Errors
/// If `task.yaml` or a file that it needs is missing or invalid.
pub fn read(tree: &Tree, instruction: Option<&str>) -> Result<Task, Refusal> {
    let missing = |file: &str, advice| Refusal::file(file, ContentProblem::MissingFile { advice });
    let bytes = tree.config(TASK_FILE)?.ok_or_else(|| missing(TASK_FILE, "add the task's configuration"))?;
    let node = Node::parse_yaml(TASK_FILE, bytes)?;
    let root = Fields::root(TASK_FILE, &node)?;
    for (file, advice) in
        [(COMPOSE_FILE, "define the service `client`"), (TEST_SCRIPT, "add the script that runs the tests")]
    {
        if !tree.has(file) {
            return Err(missing(file, advice));
        }
    }
    let instruction = match (root.text("instruction")?, instruction) {
        (None, Some(given)) => given,
        _ => root.required_text("instruction")?,
    };
    let instruction = strip_canary(instruction).to_owned();
    if instruction.trim().is_empty() {
        return Err(root.invalid("instruction", "", "the text for the agent"));
    }
    match root.required_text("difficulty")? {
        "easy" | "medium" | "hard" | "unknown" => {}
        other => return Err(root.invalid("difficulty", other, "`easy`, `medium`, `hard` or `unknown`")),
    }
    let mut metadata = serde_json::Map::new();
    metadata.insert("category".to_owned(), "software_engineering".into());
    for key in METADATA {
        if let Some(value) = root.value(key) {
            metadata.insert(key.to_owned(), value.to_json());
        }
    }
    Ok(Task {
        format: TaskFormat::TerminalBench1,
        name: None,
        version: None,
        description: String::new(),
        keywords: root.texts("tags")?.unwrap_or_default(),
        authors: authors(&root)?,
        metadata,
        source: None,
        environment: environment(tree),
        steps: vec![Step {
            name: None,
            instruction,
            agent: AgentPhase {
                timeout: Some(root.time_limit("max_agent_timeout_sec")?.unwrap_or(AGENT_TIMEOUT)),
                user: None,
                network: None,
            },
            verifier: verifier(&root)?,
            solution: solution(tree)?,
            min_rewards: Default::default(),
            healthcheck: None,
            artifacts: Vec::new(),
        }],
        reward_strategy: RewardStrategy::Mean,
    })
}

fn authors(root: &Fields<'_>) -> Result<Vec<Author>, Refusal> {
    let email = root.text("author_email")?.map(str::to_owned);
    Ok(root.text("author_name")?.map(|name| Author { name: name.to_owned(), email }).into_iter().collect())
}

fn environment(tree: &Tree) -> Environment {
    Environment {
        folder: String::new(),
        image: None,
        dockerfile: Some("Dockerfile".to_owned()).filter(|path| tree.has(path)),
        compose_file: Some(COMPOSE_FILE.to_owned()),
        service: SERVICE.to_owned(),
        build_timeout: BUILD_TIMEOUT,
        os: OperatingSystem::Linux,
        cpus: None,
        memory_mb: None,
        storage_mb: None,
        gpus: 0,
        gpu_types: Vec::new(),
        tpu: None,
        network: NetworkPolicy::Public,
        env: Variables::default(),
        workdir: None,
        skills_dir: None,
        mcp_servers: Vec::new(),
        healthcheck: None,
    }
}

fn verifier(root: &Fields<'_>) -> Result<Verifier, Refusal> {
    const PARSER: &str = "parser_name";
    let name = root.text(PARSER)?.unwrap_or(PaneParser::Pytest.as_str());
    let expected = "`pytest`, `swebench`, `sweperf`, `mlebench` or `swelancer`";
    let parser = PaneParser::ALL.into_iter().find(|parser| parser.as_str() == name);
    let parser = parser.ok_or_else(|| root.invalid(PARSER, name, expected))?;
    let is_same_shell = root.boolean("run_tests_in_same_shell")?.unwrap_or(false);
    Ok(Verifier {
        timeout: root.time_limit("max_test_timeout_sec")?.unwrap_or(TEST_TIMEOUT),
        env: Variables::default(),
        user: None,
        network: None,
        environment: VerifierEnvironment::Shared,
        collect: Vec::new(),
        script: Some(TEST_SCRIPT.to_owned()),
        grading: Grading::Pane { parser, is_same_shell },
    })
}

/// Reads the solution: a script, or else a list of commands.
fn solution(tree: &Tree) -> Result<Option<Solution>, Refusal> {
    if tree.has(SOLUTION_SCRIPT) {
        let path = SOLUTION_SCRIPT.to_owned();
        return Ok(Some(Solution::Script { path, env: Variables::default() }));
    }
    let Some(bytes) = tree.config(SOLUTION_KEYS)? else { return Ok(None) };
    let node = Node::parse_yaml(SOLUTION_KEYS, bytes)?;
    // The list is the file, so it gets a key for messages.
    let table = crate::node::Table::from([("commands".to_owned(), (node.line, node))]);
    let root = Node { line: 1, value: crate::node::Value::Table(table) };
    let commands = Fields::root(SOLUTION_KEYS, &root)?.tables("commands")?;
    if commands.len() > KEYS_MAX {
        let problem = FormatProblem::TooComplex { values_max: KEYS_MAX, depth_max: 2 };
        return Err(Refusal::file(SOLUTION_KEYS, problem));
    }
    let commands = commands.iter().map(|command| {
        Ok(Keystrokes {
            command: command.required_text("command")?.to_owned(),
            min_timeout: command.seconds("min_timeout_sec")?.unwrap_or_default(),
            max_timeout: command.seconds("max_timeout_sec")?.unwrap_or(KEYS_TIMEOUT),
            is_blocking: command.boolean("block")?.unwrap_or(false),
            has_enter: command.boolean("append_enter")?.unwrap_or(true),
        })
    });
    Ok(Some(Solution::Keystrokes(commands.collect::<Result<_, Refusal>>()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::TreeBuilder;

    fn task(config: &str, extra: &[(&str, &str)]) -> Result<Task, Refusal> {
        let mut builder = TreeBuilder::default();
        let usual = [(TASK_FILE, config), (COMPOSE_FILE, ""), (TEST_SCRIPT, ""), ("Dockerfile", "")];
        for (path, content) in usual.iter().chain(extra) {
            let path = crate::path::TaskPath::new(path).unwrap();
            builder.add(&path, None, &mut content.as_bytes()).unwrap();
        }
        read(&builder.finish(), None)
    }

    #[test]
    fn defaults_are_those_of_the_format() {
        let task = task("instruction: |-\n  Do it.\ndifficulty: easy\n", &[]).unwrap();
        let step = &task.steps[0];
        assert_eq!((task.format, step.instruction.as_str()), (TaskFormat::TerminalBench1, "Do it."));
        assert_eq!((step.agent.timeout, step.verifier.timeout), (Some(AGENT_TIMEOUT), TEST_TIMEOUT));
        assert_eq!(step.verifier.grading, Grading::Pane { parser: PaneParser::Pytest, is_same_shell: false });
        assert_eq!((step.solution.as_ref(), task.environment.service.as_str()), (None, "client"));
        assert_eq!(task.metadata["category"], "software_engineering");
    }

    #[test]
    fn every_field_is_read() {
        let config = "instruction: x\ndifficulty: hard\nauthor_name: A\nauthor_email: a@b\ntags: [c]\nparser_name: sweperf\n\
            max_agent_timeout_sec: 1800.0\nmax_test_timeout_sec: 90\nrun_tests_in_same_shell: true\nother: 1\n\
            expert_time_estimate_min: 5\n";
        let keys =
            "- command: ls\n- command: vim\n  block: true\n  append_enter: false\n  max_timeout_sec: 1.5\n";
        let read = task(config, &[(SOLUTION_KEYS, keys)]).unwrap();
        let step = &read.steps[0];
        assert_eq!(step.verifier.grading, Grading::Pane { parser: PaneParser::SwePerf, is_same_shell: true });
        assert_eq!((read.authors[0].name.as_str(), read.keywords.len()), ("A", 1));
        assert_eq!(read.metadata["expert_time_estimate_min"], 5);
        let Some(Solution::Keystrokes(keys)) = &step.solution else { panic!("{:?}", step.solution) };
        assert!(keys[0].has_enter && !keys[0].is_blocking && keys[0].max_timeout == KEYS_TIMEOUT);
        assert!(
            !keys[1].has_enter && keys[1].is_blocking && keys[1].max_timeout == Duration::from_millis(1500)
        );
        // A script wins.
        let both = task(config, &[(SOLUTION_KEYS, "x"), (SOLUTION_SCRIPT, "")]).unwrap();
        assert!(matches!(both.steps[0].solution, Some(Solution::Script { .. })));
    }

    #[test]
    fn an_old_task_takes_its_instruction_from_its_dataset() {
        let mut builder = TreeBuilder::default();
        for (path, content) in [(TASK_FILE, "difficulty: hard"), (COMPOSE_FILE, ""), (TEST_SCRIPT, "")] {
            let path = crate::path::TaskPath::new(path).unwrap();
            builder.add(&path, None, &mut content.as_bytes()).unwrap();
        }
        let tree = builder.finish();
        assert_eq!(read(&tree, None).unwrap_err().code(), "missing_field");
        assert_eq!(read(&tree, Some(" ")).unwrap_err().code(), "invalid_value");
        assert_eq!(read(&tree, Some("Do it.")).unwrap().steps[0].instruction, "Do it.");
        for (config, expected) in [
            ("difficulty: hard", None),
            ("instruction: ' '", None),
            ("instruction: |-\n  # canary 1\n  x", Some("x")),
        ] {
            assert_eq!(instruction(config).unwrap().as_deref(), expected, "{config}");
        }
        assert!(instruction("- x").is_err());
    }

    #[test]
    fn bad_tasks_are_refused() {
        for (config, code, line) in [
            ("difficulty: easy", "missing_field", 1),
            ("instruction: ''\ndifficulty: easy", "invalid_value", 1),
            ("instruction: x", "missing_field", 1),
            ("instruction: x\ndifficulty: extreme", "invalid_value", 2),
            ("instruction: x\ndifficulty: easy\nparser_name: junit", "invalid_value", 3),
            ("instruction: x\ndifficulty: easy\nmax_test_timeout_sec: .inf", "invalid_value", 3),
            ("- x", "wrong_type", 1),
            ("", "missing_field", 1),
        ] {
            let refusal = task(config, &[]).unwrap_err();
            assert_eq!((refusal.code(), refusal.place.unwrap().line), (code, Some(line)), "{config}");
        }
        let config = "instruction: x\ndifficulty: easy";
        let refusal = task(config, &[(SOLUTION_KEYS, "- command: ls\n- {}\n")]).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "`solution.yaml` line 2: the field `commands[1].command` is missing; add it"
        );
    }
}
