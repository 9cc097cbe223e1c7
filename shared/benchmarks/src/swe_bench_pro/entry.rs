//! The script that verifies a patch in a container.

use super::row::Instance;
use crate::python;
use crate::scorers::instance::InstanceScripts;

/// Folder of the repository in a container.
pub(super) const APP: &str = "/app";
/// Folder of patch, scripts and results in a container.
pub(super) const WORKSPACE: &str = "/workspace";

/// Returns the entry script: environment, base commit, patch, tests of the fix, test run, parser.
///
/// Its commands are those of the official program in the same order, unquoted where they are so there. A command that fails
/// doesn't end it.
pub(super) fn script(instance: &Instance, scripts: &InstanceScripts) -> String {
    let Instance { base_commit, test_checkout, selected, .. } = instance;
    let mut script = String::new();
    for line in environment(&scripts.base_dockerfile).chain(environment(&scripts.instance_dockerfile)) {
        script.push_str(&line);
        script.push('\n');
    }
    script.push_str(&format!(
        "cd {APP}\n\
         git reset --hard {base_commit}\n\
         git checkout {base_commit}\n\
         git apply -v {WORKSPACE}/patch.diff\n\
         {test_checkout}\n\
         bash {WORKSPACE}/run_script.sh {selected} > {WORKSPACE}/stdout.log 2> {WORKSPACE}/stderr.log\n\
         python {WORKSPACE}/parser.py {WORKSPACE}/stdout.log {WORKSPACE}/stderr.log {WORKSPACE}/output.json\n"
    ));
    script
}

/// Returns the environment lines of a Dockerfile as commands. The form without `=` becomes an export of names without values,
/// as in the official program.
fn environment(dockerfile: &str) -> impl Iterator<Item = String> + '_ {
    let lines = dockerfile.split('\n').map(python::strip).filter(|line| line.starts_with("ENV"));
    lines.map(|line| line.replacen("ENV", "export", 1))
}
