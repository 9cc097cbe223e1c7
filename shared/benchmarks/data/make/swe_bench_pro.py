"""Makes the demo instances of SWE-bench Pro from the repository of `swe_bench_pro/make_repo.sh`.

usage: python3 make/swe_bench_pro.py > swe_bench_pro.jsonl
Needs git, bash and `python`.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

DATA = Path(__file__).resolve().parent.parent / "swe_bench_pro"
REPOSITORY = "bench-demo/timesheet"
NO_INTERFACE = "No new interfaces are introduced."

TASKS = [
    {
        "tests": ["tests/test_durations.py"],
        "selected": ["tests/test_durations.py", "tests/test_log.py"],
        "problem_statement": "## Hours count as minutes\n\n`timesheet.parse(\"2h\")` returns 2. "
        "A work log with hours has totals that are far too small.",
        "requirements": "- `parse` returns the number of minutes of the whole text: an hour has 60 minutes.\n"
        "- Hours and minutes can stand together, as in `1h 30m`.\n- Texts with minutes only stay as they are.",
        "interface": NO_INTERFACE,
    },
    {
        "tests": ["tests/test_report.py"],
        "selected": ["tests/test_report.py", "tests/test_log.py"],
        "problem_statement": "## A report of a work log\n\nThere is no way to see the minutes of all projects at once. "
        "Add a function that writes them as text.",
        "requirements": "- A line `PROJECT: MINUTES` for each project, joined by newlines, without a newline at the end.\n"
        "- Projects with more minutes come first; those with equal minutes are ordered by name.\n"
        "- The report of an empty log is an empty text.\n- `from timesheet import report` works.",
        "interface": "Type: Function\nName: report\nPath: timesheet/report.py\nInput: log, a `timesheet.Log`\n"
        "Output: text with a line for each project",
    },
    {
        "tests": ["tests/test_log.py"],
        "selected": ["tests/test_durations.py", "tests/test_log.py", "tests/test_report.py"],
        "problem_statement": "## One project with several spellings\n\n`Garden` and `garden ` are different projects in a log. "
        "An entry such as `soon` is accepted without a word and counts nothing.",
        "requirements": "- `Log.add` and `Log.total` ignore case and surrounding space of a project's name; "
        "reports show names in lower case.\n"
        "- `Log.add` raises `ValueError` for a text without a duration, or with one of zero minutes, and adds nothing then.",
        "interface": NO_INTERFACE,
    },
]


def run(folder, *command, env=None):
    """Returns the standard output of a command."""
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, env=env)
    return done.stdout


def passed(folder, selected):
    """Returns the tests that pass, in the order of their results."""
    out, result = folder / ".." / "out", folder / ".." / "result.json"
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    out.write_text(run(folder, "bash", str(DATA / "run_script.sh"), ",".join(selected), env=env))
    run(folder, "python", str(DATA / "parser.py"), str(out), os.devnull, str(result))
    tests = json.loads(result.read_text())["tests"]
    return [test["name"] for test in tests if test["status"] == "PASSED"]


def instance(folder, base, fix, task):
    """Returns the row of a task."""
    tests = task["tests"]
    run(folder, "git", "checkout", "-q", fix)
    after = passed(folder, task["selected"])
    run(folder, "git", "checkout", "-q", base)
    checkout = ["git", "checkout", fix, "--", *tests]
    run(folder, *checkout)
    before = passed(folder, task["selected"])
    run(folder, "git", "reset", "-q", "--hard", base)
    code = [f":(exclude){path}" for path in tests]
    owner, name = REPOSITORY.split("/")
    return {
        "repo": REPOSITORY,
        "instance_id": f"instance_{owner}__{name}-{fix}",
        "base_commit": base,
        "patch": run(folder, "git", "diff", base, fix, "--", ".", *code),
        "test_patch": run(folder, "git", "diff", base, fix, "--", *tests),
        "problem_statement": task["problem_statement"],
        "requirements": task["requirements"],
        "interface": task["interface"],
        "repo_language": "python",
        "fail_to_pass": repr([name for name in after if name not in before]),
        "pass_to_pass": repr([name for name in after if name in before]),
        "issue_specificity": "['minor_bug']",
        "issue_categories": "['back_end_knowledge']",
        "before_repo_set_cmd": f"git reset --hard {base}\ngit clean -fd \ngit checkout {base} \n{' '.join(checkout)}",
        "selected_test_files_to_run": repr(task["selected"]),
        "dockerhub_tag": "",
    }


def main():
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "repository"
        run(scratch, "bash", str(DATA / "make_repo.sh"), str(folder))
        commits = run(folder, "git", "rev-list", "--reverse", "main").split()
        for base, fix, task in zip(commits[:-1], commits[1:], TASKS, strict=True):
            sys.stdout.write(json.dumps(instance(folder, base, fix, task), ensure_ascii=False) + "\n")


main()
