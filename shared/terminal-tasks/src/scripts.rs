//! Scripts of a task whose line ends keep them from running.

use crate::{Place, Tree};

/// Folders whose scripts the task's containers run, at the root of a task or below the folder of a step.
const FOLDERS: [&str; 2] = ["solution/", "tests/"];
/// Scripts that are run from other folders.
const SCRIPTS: [&str; 3] = ["run-tests.sh", "solution.sh", "setup.sh"];
/// Maximum number of warnings.
const WARNINGS_MAX: usize = 5;

/// Returns a sentence for each shell script of the solution or the tests whose lines end as on Windows. Scripts of the
/// environment may do so on purpose.
pub(crate) fn warnings(tree: &Tree) -> Vec<String> {
    let windows = tree.files().filter(|(path, file)| file.has_crlf && is_run(path.as_str()));
    let sentence = |file: &str| {
        let place = Place { file: file.to_owned(), line: Some(1) };
        format!(
            "{place}: its lines end with CR LF, with which shells don't find the interpreter or the commands; save it with LF"
        )
    };
    windows.map(|(path, _)| sentence(path.as_str())).take(WARNINGS_MAX).collect()
}

fn is_run(path: &str) -> bool {
    let in_step =
        path.strip_prefix("steps/").and_then(|path| path.split_once('/')).map_or(path, |(_, rest)| rest);
    SCRIPTS.contains(&in_step)
        || in_step.ends_with(".sh") && FOLDERS.iter().any(|folder| in_step.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TaskPath, TreeBuilder};

    #[test]
    fn scripts_with_line_ends_of_windows_are_named() {
        let mut builder = TreeBuilder::default();
        for (path, content) in [
            ("solution/solve.sh", "#!/bin/bash\r\ntrue\r\n"),
            ("steps/one/tests/test.sh", "#!/bin/bash\r\n"),
            ("run-tests.sh", "pytest\r\n"),
            ("tests/test.sh", "#!/bin/bash\ntrue\r\n"),
            ("tests/data.csv", "a,b\r\n"),
            ("tests/helper.sh", "\r"),
            ("environment/broken.sh", "#!/bin/bash\r\n"),
            ("broken.sh", "#!/bin/bash\r\n"),
        ] {
            builder.add(&TaskPath::new(path).unwrap(), None, &mut content.as_bytes()).unwrap();
        }
        let found = warnings(&builder.finish());
        let named: Vec<&str> = found.iter().filter_map(|sentence| sentence.split('`').nth(1)).collect();
        assert_eq!(named, ["run-tests.sh", "solution/solve.sh", "steps/one/tests/test.sh"]);
    }
}
