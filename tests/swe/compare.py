"""Compares the official program of SWE-bench Pro with ours: verdicts, entry scripts, patches, prompts, image names.

usage: compare.py SOURCE PROGRAM

SOURCE is a source tree of the official program, and PROGRAM the example `swe_bench_pro` of the crate bench-benchmarks. The
official program runs as a whole, apart from its engine and its table reader: in place of a container, its entry script runs in
folders of this machine, where the repository is built anew for each patch. Ours runs with the files that it would put into a
container. Instances that SOURCE names are compared by their texts and by made-up results.
"""

import contextlib
import importlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import types
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MINI = ROOT / "tests/data/vectors/swe_mini"
USER = "jefzda"
FILES = {
    "run_script.sh": "run_scripts/{}/run_script.sh",
    "parser.py": "run_scripts/{}/parser.py",
    "base/Dockerfile": "dockerfiles/base_dockerfile/{}/Dockerfile",
    "instance/Dockerfile": "dockerfiles/instance_dockerfile/{}/Dockerfile",
}


class Rows:
    """The part of a table that the official program uses."""

    def __init__(self, rows):
        self.loc = {row["instance_id"]: row for row in rows}
        self.index = self.loc

    @classmethod
    def read(cls, path, lines=False):
        del lines
        return cls([json.loads(line) for line in Path(path).read_text().splitlines()])

    def fillna(self, value):
        del value
        return self

    def set_index(self, name, drop):
        del name, drop
        return self


class Engine:
    """An engine whose containers are folders of this machine."""

    def __init__(self):
        self.images = types.SimpleNamespace(pull=self.pull)
        self.containers = types.SimpleNamespace(run=self.run)
        self.pulled = {}
        self.work = None

    def pull(self, image, platform=None):
        del platform
        self.pulled[image] = True

    def run(self, image, volumes, command, **options):
        assert image in self.pulled and options["entrypoint"] == "/bin/bash", options
        workspace = Path(next(iter(volumes)))
        code = self.work(workspace)
        return types.SimpleNamespace(wait=lambda: {"StatusCode": code})


class Progress:
    """A progress bar that shows nothing."""

    def __init__(self, futures, total):
        del total
        self.futures = futures

    def __iter__(self):
        return iter(self.futures)

    def set_description(self, text):
        pass


def load_official(source, engine):
    """Imports the official program, with stand-ins for the modules of its engine and its table reader."""
    sys.path.insert(0, str(source))
    sys.modules["pandas"] = types.SimpleNamespace(read_json=Rows.read)
    sys.modules["tqdm"] = types.SimpleNamespace(tqdm=Progress)
    sys.modules["docker"] = types.SimpleNamespace(from_env=lambda: engine)
    sys.modules["modal"] = None
    program = importlib.import_module("swe_bench_pro_eval")
    prompts = importlib.import_module("helper_code.create_problem_statement")
    images = importlib.import_module("helper_code.image_uri")
    return program, prompts, images


def run_official(program, root, rows, patches, scratch):
    """Runs the official program's main function. Returns its verdicts, and the folder of its outputs."""
    scratch = Path(tempfile.mkdtemp(dir=scratch))
    (scratch / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (scratch / "patches.json").write_text(json.dumps(patches))
    sys.argv = [
        "swe_bench_pro_eval.py", f"--raw_sample_path={scratch}/rows.jsonl", f"--patch_path={scratch}/patches.json",
        f"--output_dir={scratch}/out", f"--scripts_dir={root}/run_scripts", f"--dockerhub_username={USER}",
        "--use_local_docker", "--num_workers=2",
    ]
    os.makedirs(scratch / "out")
    os.chdir(root)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        program.main()
    return json.loads((scratch / "out/eval_results.json").read_text()), scratch / "out"


def ask(program, questions):
    """Returns our answers to questions."""
    text = "".join(json.dumps(question) + "\n" for question in questions)
    done = subprocess.run([program], input=text, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.split("\n") if line]


def scripts_of(root, instance):
    """Returns an instance's official files, as they are."""
    def read(path):
        return (Path(root) / path.format(instance)).read_bytes().decode()
    return {name: read(path) for name, path in FILES.items()}


def run_entry(workspace, make_repo):
    """Runs an entry script in folders of this machine. Returns its exit code."""
    with tempfile.TemporaryDirectory() as scratch:
        app, binaries = Path(scratch, "app"), Path(scratch, "bin")
        subprocess.run(["bash", make_repo, app], check=True, capture_output=True)
        binaries.mkdir()
        (binaries / "python").symlink_to(sys.executable)
        entry = (workspace / "entryscript.sh").read_text()
        entry = entry.replace("/workspace", str(workspace)).replace("/app", str(app))
        path = f"{binaries}:{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "HOME": scratch, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(["bash", "-c", entry], cwd=scratch, env=environment, capture_output=True, timeout=120)
        return done.returncode


def commands(script):
    """Returns the commands of an entry script, without comments and blank lines."""
    lines = [line.strip() for line in script.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


class Comparison:
    """Counts what is equal, and prints what isn't."""

    def __init__(self):
        self.counts = {}

    def compare(self, what, name, official, own):
        equal, total = self.counts.get(what, (0, 0))
        self.counts[what] = (equal + (official == own), total + 1)
        if official != own:
            print(f"{what} of {name} differs:\n  official: {official!r:.600}\n  ours:     {own!r:.600}")

    def finish(self):
        for what, (equal, total) in self.counts.items():
            print(f"{what}: {equal} of {total} equal")
        return all(equal == total for equal, total in self.counts.values())


def unusual_patches(gold):
    """Returns patches that are not among the recorded ones, by name."""
    body = gold.split("\n", 2)[2]
    code = "minicart/cart.py"
    rename = f"diff --git a/{code} b/minicart/basket.py\nsimilarity index 100%\nrename from {code}\nrename to minicart/basket.py\n"
    new = "diff --git a/{0} b/{0}\nnew file mode {1}\n--- /dev/null\n+++ b/{0}\n@@ -0,0 +1 @@\n+{2}\n"
    packed = "diff --git a/x.bin b/x.bin\nnew file mode 100644\nGIT binary patch\nliteral 3\nKcmZ?wbhEHbU|\n\nliteral 0\nHcmV?d00001\n\n"
    fake = "FILE tests/test_cart.py\\ntest_count (x) ... ok\\ntest_bad_count (x) ... ok"
    return {
        "renamed module": rename,
        "renamed module with an alias": rename + new.format("minicart/cart.py", "100644", "from .basket import *"),
        "mode change only": f"diff --git a/{code} b/{code}\nold mode 100644\nnew mode 100755\n",
        "mode change and gold": "diff --git a/README b/README\nnew file mode 100755\n" + gold,
        "symbolic link and gold": new.format("link", "120000", "minicart") + gold,
        "quoted path and gold": new.format("caf\\303\\251.txt", "100644", "x") + gold,
        "binary section before gold": packed + gold,
        "binary section after gold": gold + packed,
        "only a binary section": packed,
        "binary words with CRLF": "diff --git a/b b/b\nBinary files a/b and b/b differ\r\n" + gold,
        "binary words in added text": gold + new.format("notes.txt", "100644", "Binary files a and b differ"),
        "binary line as context": gold + "diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\nGIT binary patch\n",
        "without the diff line": body,
        "without index and diff lines": "\n".join(line for line in body.split("\n") if not line.startswith("index")),
        "wrong line numbers": gold.replace("@@ -3,10 +3,12 @@", "@@ -1,10 +1,12 @@"),
        "wrong counts": gold.replace("@@ -3,10 +3,12 @@", "@@ -3,9 +3,12 @@"),
        "without prefixes": gold.replace("a/minicart", "minicart").replace("b/minicart", "minicart"),
        "applied twice": gold + gold,
        "text after the patch": gold + "\nThat is all.\n",
        "in a fence": "```diff\n" + gold + "```\n",
        "spaces only": " \n\t\n",
        "blank lines before": "\n\n" + gold,
        "byte order mark": "\ufeff" + gold,
        "old Mac line ends": gold.replace("\n", "\r"),
        "form feed and separators": gold + "\x0c\x1c\x85\n",
        "path outside": gold.replace(code, "../cart.py"),
        "path in .git": new.format(".git/hooks/post-checkout", "100755", "exit 1") + gold,
        "shadows unittest": new.format("unittest.py", "100644", "raise SystemExit(0)") + gold,
        "prints fake results": new.format("sitecustomize.py", "100644", f'print("{fake}")'),
        "prints fake results and breaks": f"diff --git a/minicart/__init__.py b/minicart/__init__.py\n--- a/minicart/__init__.py\n+++ b/minicart/__init__.py\n@@ -1 +1,2 @@\n+print(\"{fake}\")\n from .cart import Cart\n",
        "ends the process": new.format("sitecustomize.py", "100644", "import os; os._exit(3)") + gold,
        "many empty files": "".join(f"diff --git a/e{i} b/e{i}\nnew file mode 100644\nindex 0000000..e69de29\n" for i in range(200)) + gold,
        "non-ASCII text": new.format("text.txt", "100644", "Grüße 日本 \U0001f600") + gold,
        "zero byte": new.format("zero.txt", "100644", "a\0b") + gold,
    }


def compare_mini(official, engine, program, comparison, scratch):
    """Compares patches to the miniature repository."""
    row = json.loads((MINI / "instances.jsonl").read_text().splitlines()[0])
    name = row["instance_id"]
    recorded = json.loads((MINI / "candidates.json").read_text())["candidates"]
    patches = {f"recorded: {one['label']}": one["patch"] for one in recorded}
    unusual = unusual_patches(row["patch"])
    patches |= {f"unusual: {label}": patch for label, patch in unusual.items()}
    engine.work = lambda workspace: run_entry(workspace, MINI / "make_repo.sh")
    resolved = 0
    for at, (label, patch) in enumerate(patches.items()):
        sample = {"instance_id": name, "patch": patch, "prefix": f"p{at}"}
        verdicts, out = run_official(official, MINI, [row], [sample], scratch)
        workspace = out / name / "workspace"
        official_files = {path.name: path.read_bytes() for path in workspace.iterdir()}
        question = {"row": row, "patch": patch, "scripts": scripts_of(MINI, name), "output": None}
        [ours] = ask(program, [question])
        own = Path(tempfile.mkdtemp(dir=scratch))
        for path, text in ours["files"].items():
            (own / path).write_text(text, newline="")
            if path != "entryscript.sh":
                comparison.compare("file of a verification", f"{label}: {path}", official_files[path], text.encode())
        entry = official_files["entryscript.sh"].decode()
        comparison.compare("entry script", label, commands(entry), commands(ours["files"]["entryscript.sh"]))
        run_entry(own, MINI / "make_repo.sh")
        output = (own / "output.json").read_text() if (own / "output.json").exists() else None
        official_output = official_files.get("output.json")
        parsed = json.loads(official_output) if official_output else None
        comparison.compare("test results", label, parsed, json.loads(output) if output else None)
        [ours] = ask(program, [{**question, "output": output}])
        comparison.compare("verdict", label, verdicts[name], ours["resolved"])
        resolved += verdicts[name]
        shutil.rmtree(own)
    print(f"miniature repository: {len(patches)} patches ({len(recorded)} recorded, {len(unusual)} unusual), {resolved} resolve")


def instances(source):
    """Returns a row for each instance that the source tree has all files of, with made-up texts where it has none."""
    rows = []
    for folder in sorted((source / "dockerfiles/base_dockerfile").iterdir()):
        name = folder.name
        facts = {}
        with contextlib.suppress(FileNotFoundError):
            for line in (source / "run_scripts" / name / "instance_info.txt").read_text().splitlines():
                key, _, value = line.partition(": ")
                facts[key.strip().lower()] = value.strip()
        if not all((source / path.format(name)).is_file() for path in FILES.values()) or "base commit" not in facts:
            continue
        base = facts["base commit"]
        files = json.loads(facts["test files"])
        rows.append({
            "instance_id": name,
            "repo": facts["repository"],
            "base_commit": base,
            "patch": "",
            "problem_statement": f"Statement of {name}\n\n  with 'quotes', \"more\" and {{braces}} \u00e4\u00f6\n",
            "requirements": f"- It works at {base}.\n- It stays so.",
            "interface": "No new interfaces are introduced.",
            # As the data set writes lists: as Python does.
            "fail_to_pass": repr(json.loads(facts["fail_to_pass"])),
            "pass_to_pass": repr(json.loads(facts["pass_to_pass"])),
            "selected_test_files_to_run": repr(files),
            "before_repo_set_cmd": f"git reset --hard {base}\ngit clean -fd \ngit checkout {base} \ngit checkout {name[-40:]} -- {' '.join(files)}\n",
            "dockerhub_tag": "",
        })
    return rows


def made_up_outputs(row):
    """Returns outputs of an instance's parser, by name."""
    names = list(dict.fromkeys(eval(row["fail_to_pass"]) + eval(row["pass_to_pass"])))
    def tests(statuses):
        return json.dumps({"tests": [{"name": name, "status": status} for name, status in statuses]})
    passed = [(name, "PASSED") for name in names]
    last = names[-1] if names else "none"
    return {
        "all passed": tests(passed),
        "last missing": tests(passed[:-1]),
        "last skipped": tests(passed[:-1] + [(last, "SKIPPED")]),
        "last failed and passed": tests([(last, "FAILED"), *passed]),
        "names with space at the end": tests([(name + " ", status) for name, status in passed]),
        "further failures": tests([*passed, ("another test", "FAILED"), ("another test", "ERROR")]),
        "nothing": tests([]),
    }


def compare_instances(modules, source, engine, program, comparison, scratch):
    """Compares texts and made-up results of the instances that the source tree names."""
    official, prompts, images = modules
    rows = instances(source)
    patch = "diff --git a/b b/b\nBinary files a/b and b/b differ\ndiff --git a/c b/c\n--- a/c\n+++ b/c\n@@ -1 +1 @@\n-x\n+y\n"
    questions = [{"row": row, "patch": patch, "scripts": scripts_of(source, row["instance_id"]), "output": None} for row in rows]
    os.chdir(source)
    for row, ours in zip(rows, ask(program, questions), strict=True):
        name = row["instance_id"]
        if "error" in ours:
            comparison.compare("instance", name, "no error", ours["error"])
            continue
        with contextlib.redirect_stdout(io.StringIO()):
            files, entry = official.assemble_workspace_files(name, str(source / "run_scripts"), patch, row)
        for path in ["patch.diff", "run_script.sh", "parser.py"]:
            comparison.compare("file of an instance", f"{name}: {path}", files[path], ours["files"][path])
        comparison.compare("entry script of an instance", name, commands(entry), commands(ours["files"]["entryscript.sh"]))
        comparison.compare("prompt", name, prompts.create_problem_statement(row), ours["prompt"])
        comparison.compare("image name", name, images.get_dockerhub_image_uri(name, USER, row["repo"]), ours["image"])
    scenarios = list(made_up_outputs(rows[0])) if rows else []
    for scenario in scenarios:
        outputs = {row["instance_id"]: made_up_outputs(row)[scenario] for row in rows}

        def work(workspace, outputs=outputs):
            (workspace / "output.json").write_text(outputs[workspace.parent.name])
            return 0

        engine.work = work
        samples = [{"instance_id": row["instance_id"], "model_patch": patch, "prefix": "p"} for row in rows]
        with contextlib.redirect_stderr(io.StringIO()):
            verdicts, _ = run_official(official, source, rows, samples, scratch)
        asked = [{**question, "output": outputs[question["row"]["instance_id"]]} for question in questions]
        for row, ours in zip(rows, ask(program, asked), strict=True):
            name = row["instance_id"]
            comparison.compare("verdict of made-up results", f"{name}, {scenario}", verdicts[name], ours.get("resolved"))
    print(f"source tree: {len(rows)} instances, {len(scenarios)} made-up results each")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, program = (Path(argument).resolve() for argument in sys.argv[1:])
    if not (source / "swe_bench_pro_eval.py").is_file():
        sys.exit(f"{source} has no swe_bench_pro_eval.py; give a source tree of the official program")
    engine, comparison = Engine(), Comparison()
    modules = load_official(source, engine)
    with tempfile.TemporaryDirectory() as scratch:
        compare_mini(modules[0], engine, program, comparison, scratch)
        compare_instances(modules, source, engine, program, comparison, scratch)
    sys.exit(0 if comparison.finish() else 1)


main()
