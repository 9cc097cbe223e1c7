//! Programming tasks whose tests run with pytest, in the answer's own process.

use std::path::Path;

use bench_benchmarks::code_lab::{Extent, TaskResults, read_results, task_job};
use bench_code_tasks::{CodeTask, TaskFiles, Workspace};
use bench_terminal_tasks::TaskPath;

use crate::job::JobFolder;
use crate::python;

const KEY: [u8; 32] = [7; 32];
const TESTS: &str = "from calc import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n\n\ndef test_zero():\n    assert add(0, 0) == 0\n";

fn task() -> CodeTask {
    let metadata = r#"{"language": "python", "instructions_file": "instructions.md", "eval": {"command": ["pytest", "-q"]}}"#;
    let mut files = TaskFiles::default();
    for (path, text) in [
        ("metadata.json", metadata),
        ("instructions.md", "The sum is a difference."),
        ("workspace/calc.py", "def add(a, b):\n    return a - b\n"),
        ("tests/test_calc.py", TESTS),
    ] {
        files.add(&TaskPath::new(path).unwrap(), None, text.as_bytes().to_vec()).unwrap();
    }
    CodeTask::read(&files, "calc").unwrap()
}

/// Runs the tests on a workspace with these files.
fn results<const N: usize>(files: [(&str, &str); N]) -> TaskResults {
    let folder = JobFolder::create(&task_job(&task(), &Workspace::from(files), &KEY, Extent::All));
    let report = folder.run(&[python::bin(), Path::new("/usr/bin"), Path::new("/bin")]);
    read_results(&report, &KEY).unwrap_or_else(|why| panic!("{why}: {report:?}"))
}

#[test]
fn pytest_reports_every_test_by_name() {
    let wrong = results([("calc.py", "def add(a, b):\n    return a - b\n")]);
    assert_eq!(wrong.tests.len(), 2, "{wrong:?}");
    assert_eq!(wrong.missed(None), ["tests/test_calc.py::test_add"], "{wrong:?}");
    let right = results([("calc.py", "def add(a, b):\n    return a + b\n")]);
    assert!(right.passes(None), "{right:?}");
}

#[test]
fn answers_that_attack_pytest_pass_nothing() {
    let subtracts = "def add(a, b):\n    return a - b\n";
    let with = |code: &str| format!("{code}\n{subtracts}");
    let leaves = with("import os\nos._exit(0)");
    let patches = with("import _pytest.python\n_pytest.python.Function.runtest = lambda self: None");
    let reports = with(
        "import _pytest.reports\n_pytest.reports.TestReport.failed = property(lambda self: False)\n_pytest.reports.TestReport.outcome = 'passed'",
    );
    let recorded = ["tests/test_calc.py::test_add".to_owned(), "tests/test_calc.py::test_zero".to_owned()];
    for code in [&leaves, &patches, &reports] {
        let results = results([("calc.py", code)]);
        assert!(!results.passes(Some(&recorded)), "{code}: {results:?}");
    }
    let stub = "def test_add():\n    pass\n\n\ndef test_zero():\n    pass\n";
    let hook = "import pytest\n\n\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_pyfunc_call(pyfuncitem):\n    outcome = yield\n    outcome.force_result(True)\n";
    for (path, text) in
        [("tests/test_calc.py", stub), ("conftest.py", hook), ("tests/conftest.py", hook), ("pytest.py", "")]
    {
        let results = results([("calc.py", subtracts), (path, text)]);
        assert!(!results.passes(Some(&recorded)), "{path}: {results:?}");
    }
}
