//! Environment of a task's programs: toolchains, and the packages that the task declares.
//!
//! A sandbox host installs packages before it runs answers, in a folder of its own for each declaration
//! ([`Dependencies::name`]). Sandboxes find the folder of all of them in the variable [`PACKAGES_VARIABLE`], and can only read
//! it.

use std::collections::BTreeMap;
use std::time::Duration;

use bench_code_tasks::{CodeTask, Dependencies, Language, PackageManager, TestCommand};
use serde_json::{Value, json};

/// Variable of sandboxes with the folder of installed packages.
pub const PACKAGES_VARIABLE: &str = "SANDY_PACKAGES";
/// File in a folder of installed packages that describes them. Only complete folders have it.
pub const PACKAGES_MARKER: &str = "bench-packages.json";

/// File in the folder of installed packages with the speed of the host: the time of a fixed program of each language, in
/// milliseconds.
pub const SPEED_FILE: &str = "speed.json";
/// Maximum factor by which a slow host raises a task's time limit.
const SCALE_MAX: u32 = 4;
/// Maximum of a raised time limit.
const LIMIT_MAX: Duration = Duration::from_secs(3_600);

/// Returns the longest time limit that a host may give a task. It's the task's own unless its proof tells the speed of the
/// host that ran the reference.
pub(super) fn time_limit_max(task: &CodeTask) -> Duration {
    match host_ms(task) {
        Some(_) => (task.timeout * SCALE_MAX).min(LIMIT_MAX).max(task.timeout),
        None => task.timeout,
    }
}

/// Returns what the supervisor needs to compute the time limit on its host.
pub(super) fn calibration(task: &CodeTask) -> Value {
    json!({
        "language": task.language.as_str(),
        "host_ms": host_ms(task),
        "limit_max": time_limit_max(task).as_secs(),
        "speed_file": SPEED_FILE,
    })
}

fn host_ms(task: &CodeTask) -> Option<u64> {
    task.proof.as_ref().and_then(|proof| proof.host_ms).filter(|ms| *ms > 0)
}

/// Returns the name of the folder, below that of a declaration, in which a package manager's packages are installed.
pub const fn packages_folder(manager: PackageManager) -> &'static str {
    match manager {
        PackageManager::Pip => "site",
        PackageManager::Npm => "node_modules",
        PackageManager::Cargo => "vendor",
        PackageManager::Go => "mod",
    }
}

/// Returns what makes a task's packages known to its programs: variables, files and links. `{packages}` and `{home}` in their
/// texts and paths are the folder of all packages and the programs' home.
pub(super) fn packages(task: &CodeTask) -> Value {
    let (mut variables, mut files, mut links) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for one in task.dependencies.iter().flatten() {
        let folder = format!("{{packages}}/{}/{}", one.name(), packages_folder(one.manager));
        match one.manager {
            PackageManager::Pip => {
                variables.insert("PYTHONPATH", folder);
            }
            PackageManager::Npm => {
                let name = packages_folder(PackageManager::Npm);
                let link =
                    if one.folder.is_empty() { name.to_owned() } else { format!("{}/{name}", one.folder) };
                links.insert(link, folder);
            }
            PackageManager::Cargo => {
                let config =
                    "[source.crates-io]\nreplace-with = \"installed\"\n\n[source.installed]\ndirectory = ";
                files.insert("{home}/cargo/config.toml", format!("{config}'{folder}'\n"));
            }
            PackageManager::Go => {
                variables.insert("GOMODCACHE", folder);
                variables.insert("GOSUMDB", "off".to_owned());
            }
        }
    }
    json!({ "variables": variables, "files": files, "links": links })
}

/// Returns the command that checks whether a sandbox has the toolchain of a task's language and its packages, and prints what
/// is missing.
pub(super) fn probe(task: &CodeTask) -> String {
    let language = task.language;
    let (programs, advice) = match language {
        Language::Python => ("", ""),
        Language::JavaScript | Language::Html => ("node", "install the package nodejs on the sandbox host"),
        Language::Go => ("go", "run bench sandy setup --toolchains on the sandbox host"),
        Language::Rust => ("cargo rustc", "run bench sandy setup --toolchains on the sandbox host"),
        Language::Cpp => ("g++", "install the package g++ on the sandbox host"),
    };
    let mut lines = vec![
        "python3 -I -S -c 'import sys; sys.version_info < (3, 10) and sys.exit(print(\"the sandbox has Python \" + sys.version.split()[0] + \": 3.10 or later is needed\") or 1)' || exit 1".to_owned(),
    ];
    let mut python = "python3 -I".to_owned();
    for one in task.dependencies.iter().flatten() {
        lines.push(packages_probe(one));
        if one.manager == PackageManager::Pip {
            let folder = packages_folder(one.manager);
            python = format!("PYTHONPATH=\"${PACKAGES_VARIABLE}/{}/{folder}\" python3 -s", one.name());
        }
    }
    if matches!(task.command, TestCommand::Pytest(_)) {
        lines.push(format!("{python} -c 'import pytest' 2> /dev/null || {{ echo \"not runnable here: the Python of sandboxes has no pytest; run bench sandy setup on the sandbox host\"; exit 1; }}"));
    }
    lines.push(format!(
        "for program in {programs}; do\n\
         command -v $program > /dev/null || {{ echo \"not runnable here: the sandbox has no $program for tasks in {language}; {advice}\"; exit 1; }}\n\
         done"
    ));
    lines.join("\n")
}

/// Returns the command that checks whether packages are installed: completely, and for the Python of sandboxes.
fn packages_probe(packages: &Dependencies) -> String {
    let marker = format!("\"${PACKAGES_VARIABLE}/{}/{PACKAGES_MARKER}\"", packages.name());
    // The name of the file can't contain what a shell reads: it's one of those that package managers read, in a folder of the
    // task, which may have any name.
    let file = packages.declared_in.rsplit('/').next().unwrap_or_default();
    let missing = format!(
        "{{ echo \"not runnable here: the packages of {file} are not installed; run bench sandy setup --packages with the folder of the tasks on the sandbox host\"; exit 1; }}"
    );
    let mut line = format!("[ -f {marker} ] || {missing}");
    if packages.manager == PackageManager::Pip {
        line.push_str(&format!(
            "\ngrep -q \"\\\"python\\\": *\\\"$(python3 -I -S -c 'import sys; print(\"%d.%d\" % sys.version_info[:2])')\\\"\" {marker} || {missing}"
        ));
    }
    line
}

#[cfg(test)]
mod tests {
    use bench_code_tasks::{Proof, TaskFiles};
    use bench_terminal_tasks::TaskPath;

    use super::*;

    fn task(language: &str, files: &[(&str, &str)]) -> CodeTask {
        let metadata = format!(r#"{{"language": "{language}", "instructions_file": "instructions.md"}}"#);
        let common =
            [("metadata.json", metadata.as_str()), ("instructions.md", "x"), ("workspace/a.py", "x")];
        let mut all = TaskFiles::default();
        for (path, text) in common.iter().chain(files) {
            all.add(&TaskPath::new(path).unwrap(), None, text.as_bytes().to_vec()).unwrap();
        }
        CodeTask::read(&all, "x").unwrap()
    }

    #[test]
    fn packages_are_found_where_the_host_installs_them() {
        let task =
            task("python", &[("requirements.txt", "pytest==7.4.4\n"), ("workspace/web/package.json", "{}")]);
        let name = task.dependencies.as_ref().unwrap()[0].name();
        let all = packages(&task);
        assert_eq!(all["variables"]["PYTHONPATH"], format!("{{packages}}/{name}/site"));
        let probe = probe(&task);
        for part in [
            format!(
                "[ -f \"$SANDY_PACKAGES/{name}/bench-packages.json\" ] || {{ echo \"not runnable here: the packages of requirements.txt are not installed; "
            ),
            format!("PYTHONPATH=\"$SANDY_PACKAGES/{name}/site\" python3 -s -c 'import pytest'"),
        ] {
            assert!(probe.contains(&part), "{part}\n{probe}");
        }
    }

    #[test]
    fn time_limits_are_raised_only_if_the_proof_tells_the_speed_of_its_host() {
        let mut proven = task("python", &[]);
        let seconds = |task: &CodeTask| time_limit_max(task).as_secs();
        assert_eq!((seconds(&proven), &calibration(&proven)["host_ms"]), (300, &Value::Null));
        proven.proof = Some(Proof {
            task_digest: proven.digest.clone(),
            solutions_digest: None,
            tests: vec!["a".to_owned()],
            repeats: 1,
            reference_ms: Some(1_000),
            host_ms: Some(500),
            wrong: BTreeMap::new(),
        });
        assert_eq!(seconds(&proven), 1_200);
        proven.timeout = Duration::from_secs(1_800);
        assert_eq!(seconds(&proven), 3_600);
        proven.timeout = Duration::from_secs(3_600);
        assert_eq!(seconds(&proven), 3_600);
    }

    #[test]
    fn tasks_without_packages_need_none() {
        let task = task("rust", &[("workspace/Cargo.toml", "[dependencies]\n")]);
        assert_eq!(packages(&task), json!({ "variables": {}, "files": {}, "links": {} }));
        assert!(!probe(&task).contains(PACKAGES_VARIABLE));
    }
}
