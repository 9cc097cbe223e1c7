"""Runs tasks in Harbor and in Bench Runner and compares their rewards (`make compare-harbor`).

Runs each task with the agents oracle and nop, on the engine of `DOCKER_HOST`. Rewards have to be equal, by key and as
numbers; where there are none, the classes of the exceptions. Prints a table, and exits with 1 if anything differs. Removes
what both programs made at the engine, also after Ctrl-C. Results and logs stay in target/harbor.

The two programs get the same folders, except that Harbor's copies don't forbid the network: Harbor enforces that with
images that it pulls. Networks aren't compared.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Sequence

ROOT = pathlib.Path(__file__).resolve().parents[2]
STATE = ROOT / "target" / "harbor"
AGENTS = ["oracle", "nop"]
BASE_IMAGE = "debian:bookworm"
# Variable that tasks may ask for, as `${COMPARE_GIVEN}`.
GIVEN = ("COMPARE_GIVEN", "given by the order")
# Names of Bench Runner where Harbor passes on an exception of Python: for a task without the solution that the oracle runs.
NAMES = {"FileNotFoundError": "TaskRefusedError"}
# Maximum time of one program with one agent, and of its cleanup after a signal, in seconds.
RUN_MAX = 3600
STOP_MAX = 120
# Limit of a table's cell, in characters.
CELL_MAX = 60


class Stopped(Exception):
    """The command was asked to end."""


class Outcome:
    """Rewards by key, or the class of the exception, or the reason for which there is neither."""

    def __init__(self, rewards: dict | None, exception: str | None, missing: str = ""):
        self.rewards = {key: float(reward) for key, reward in rewards.items()} if rewards else None
        self.exception = exception
        self.missing = missing

    def equals(self, other: "Outcome") -> bool:
        if self.missing or other.missing:
            return False
        if self.rewards is None or other.rewards is None:
            names = [NAMES.get(name, name) for name in (self.exception, other.exception)]
            return self.rewards is other.rewards and names[0] == names[1]
        return self.rewards.keys() == other.rewards.keys() and all(
            abs(reward - other.rewards[key]) < 1e-9 for key, reward in self.rewards.items()
        )

    def text(self, other: "Outcome") -> str:
        """Returns the main reward and how many others there are, or those that differ from the other program's."""
        if self.missing:
            return self.missing
        if self.rewards is None:
            return self.exception or "no reward, no exception"
        main = f"{self.rewards['reward']:g}" if "reward" in self.rewards else "-"
        others = {key: reward for key, reward in self.rewards.items() if key != "reward"}
        compared = other.rewards or others
        differing = [f"{key}={reward:g}" for key, reward in others.items() if compared.get(key) != reward]
        if differing:
            return f"{main} ({', '.join(differing)})"
        return f"{main} (and {len(others)} more)" if others else main


def say(text: str) -> None:
    print(text, flush=True)


def docker(*args: str, check: bool = True) -> list[str]:
    ran = subprocess.run(["docker", *args], capture_output=True, text=True)
    if check and ran.returncode != 0:
        raise RuntimeError(f"`docker {' '.join(args)}` failed: {ran.stderr.strip()}")
    return ran.stdout.split()


def run(command: list, log: pathlib.Path, environment: dict[str, str]) -> None:
    """Runs a program in a session of its own, and passes a signal on, so that the program can clean up."""
    with log.open("w") as output:
        process = subprocess.Popen(
            [str(part) for part in command], cwd=log.parent, env=environment, stdin=subprocess.DEVNULL,
            stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
        )
        try:
            process.wait(RUN_MAX)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(STOP_MAX)
                except subprocess.TimeoutExpired:
                    pass
            # Whatever is left of it.
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()


class Harbor:
    name = "Harbor"

    def __init__(self, tasks: list[pathlib.Path], environment: dict[str, str], state: pathlib.Path):
        self.state = state
        self.folder = state / "harbor-tasks"
        for task in tasks:
            copy = self.folder / task.name
            shutil.copytree(task, copy)
            settings = copy / "task.toml"
            settings.write_text(settings.read_text().replace('network_mode = "no-network"', 'network_mode = "public"'))
        self.jobs = state / "jobs"
        self.environment = {
            **environment,
            "HARBOR_TELEMETRY": "off",
            GIVEN[0]: GIVEN[1],
            # Podman has no BuildKit, which the docker command would start in a container.
            **({"DOCKER_BUILDKIT": "0"} if is_podman() else {}),
        }

    def run(self, agent: str, concurrency: int, options: Sequence[str] = ()) -> dict[str, Outcome]:
        log = self.state / f"harbor-{agent}.log"
        command = [pathlib.Path(sys.executable).parent / "harbor", "run", "--path", self.folder, "--agent", agent]
        command += ["--env", "docker", "--jobs-dir", self.jobs, "--job-name", agent, "--n-concurrent", str(concurrency)]
        run([*command, *options, "--yes", "--quiet"], log, self.environment)
        found = {}
        for result in (self.jobs / agent).glob("*__*/result.json"):
            trial = json.loads(result.read_text())
            path = trial["config"]["task"]["path"]
            found[pathlib.Path(path).name] = self.outcome(trial)
        return found

    @staticmethod
    def outcome(trial: dict) -> Outcome:
        verified = trial.get("verifier_result") or {}
        exceptions = [trial.get("exception_info")]
        exceptions += [step.get("exception_info") for step in trial.get("step_results") or []]
        names = [exception["exception_type"] for exception in exceptions if exception]
        return Outcome(verified.get("rewards"), names[0] if names else None)

    def remove(self) -> None:
        """Removes what trials left that were killed, or failed to clean up, found by the names of their compose projects."""
        trials = [folder.name for folder in self.jobs.glob("*/*__*")]
        prefixes = tuple(re.sub(r"[^a-z0-9_-]", "-", f"{trial}__".lower()) for trial in trials)
        if not prefixes:
            return
        label = "com.docker.compose.project"
        for kind, args in [("container", ["--all"]), ("network", []), ("volume", [])]:
            key = "Name" if kind == "volume" else "ID"
            form = f'{{{{.{key}}}}}={{{{.Label "{label}"}}}}'
            for line in docker(kind, "ls", *args, "--filter", f"label={label}", "--format", form, check=False):
                identifier, _, project = line.partition("=")
                if project.startswith(prefixes):
                    force = ["--force", "--volumes"] if kind == "container" else []
                    docker(kind, "rm", *force, identifier, check=False)
        for image in docker("image", "ls", "--format", "{{.Repository}}:{{.Tag}}", check=False):
            if image.rsplit("/")[-1].startswith(prefixes):
                docker("image", "rm", "--force", image, check=False)


class BenchRunner:
    name = "Bench Runner"

    def __init__(
        self, tasks: list[pathlib.Path], environment: dict[str, str], state: pathlib.Path, bench: pathlib.Path
    ):
        self.state = state
        self.folder = state / "tasks"
        for task in tasks:
            shutil.copytree(task, self.folder / task.name)
        self.bench = bench
        self.environment = environment
        command = [bench, "tasks", "check", "--no-episodes", "--json", self.folder]
        checked = subprocess.run([str(part) for part in command], env=environment, capture_output=True, text=True)
        if checked.returncode != 0:
            raise SystemExit(f"Bench Runner refuses a task: {checked.stdout}{checked.stderr}")
        self.hashes = [task["content_hash"] for task in json.loads(checked.stdout)]
        self.images = set(self.listed())
        # A short path: sockets of sandboxes are below it, and have paths of at most 107 bytes.
        self.data = pathlib.Path(tempfile.mkdtemp(prefix="bench-data-"))

    def run(self, agent: str, concurrency: int, options: Sequence[str] = ()) -> dict[str, Outcome]:
        log, out = self.state / f"bench-{agent}.log", self.state / "out" / agent
        command = [self.bench, "run", "--task", self.folder, "--agent", agent, "--concurrency", str(concurrency)]
        # An order with a variable that none of its tasks asks for is refused.
        if any(GIVEN[0] in file.read_text(errors="ignore") for file in self.folder.rglob("*") if file.is_file()):
            command += ["--option", f"terminal_tasks.env.{GIVEN[0]}={GIVEN[1]}"]
        command += options
        run([*command, "--yes", "--out", out, "--data-dir", self.data], log, self.environment)
        found = {}
        for archive in out.glob("*.zip"):
            with zipfile.ZipFile(archive) as files:
                results = json.loads(files.read("results.json"))
            for item in (item for benchmark in results["benchmarks"] for item in benchmark["items"]):
                name = item["source_id"].partition("@")[0]
                found[name.rsplit("/")[-1]] = self.outcome(item)
        return found

    @staticmethod
    def outcome(item: dict) -> Outcome:
        episode = item["judge_output"]
        if not episode:
            return Outcome(None, None, f"{item['outcome']}: {item['error_code']}")
        exceptions = [episode["exception"], *(step["exception"] for step in episode["episode_steps"])]
        names = [exception["name"] for exception in exceptions if exception]
        return Outcome(episode["rewards"], names[0] if names else None)

    def listed(self) -> list[str]:
        """Lists the images of the tasks, whose names have their content hashes."""
        images = docker("image", "ls", "--format", "{{.Repository}}:{{.Tag}}", check=False)
        return [image for image in images if any(f"bench__{content}" in image for content in self.hashes)]

    def remove(self) -> None:
        """Removes the data directory, and the images of the tasks, which Bench Runner keeps for other episodes."""
        shutil.rmtree(self.data, ignore_errors=True)
        for image in set(self.listed()) - self.images:
            docker("image", "rm", image, check=False)


def is_podman() -> bool:
    return any("podman" in word.lower() for word in docker("version", "--format", "{{json .Server}}"))


def environment(state: pathlib.Path) -> dict[str, str]:
    """Returns the environment of both programs: that of this process without keys, settings and home."""
    kept = ["PATH", "LANG", "TMPDIR", "DOCKER_HOST", "DOCKER_CONFIG", "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF"]
    home = state / "home"
    home.mkdir()
    return {**{name: os.environ[name] for name in kept if name in os.environ}, "HOME": str(home)}


def find(paths: list[str]) -> list[pathlib.Path]:
    """Returns the task folders at these paths; without any, the sample tasks and those of this comparison."""
    folders = [pathlib.Path(path).resolve() for path in paths] or [ROOT / "sample-tasks", ROOT / "tests" / "harbor" / "tasks"]
    tasks = []
    for folder in folders:
        found = [folder] if (folder / "task.toml").exists() else sorted(file.parent for file in folder.glob("*/task.toml"))
        if not found:
            raise SystemExit(f"no tasks in {folder}")
        tasks += found
    return tasks


def show(rows: list[tuple[str, str, Outcome, Outcome]]) -> None:
    lines = [("task", "agent", Harbor.name, BenchRunner.name, "equal")]
    for task, agent, theirs, ours in rows:
        equal = "yes" if theirs.equals(ours) else "NO"
        lines.append((task, agent, theirs.text(ours)[:CELL_MAX], ours.text(theirs)[:CELL_MAX], equal))
    widths = [max(map(len, column)) for column in zip(*lines)]
    for line in lines:
        say("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())


def clean_up(programs: list, had_base: bool) -> None:
    """Removes what programs made at the engine. Ctrl-C doesn't interrupt it."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    for program in programs:
        program.remove()
    if not had_base:
        docker("image", "rm", BASE_IMAGE, check=False)


def compare(tasks: list[pathlib.Path], bench: pathlib.Path, concurrency: int) -> bool:
    began = time.monotonic()
    had_base = bool(docker("image", "ls", "--quiet", BASE_IMAGE))
    subprocess.run([ROOT / "tests" / "harbor" / "base.sh", STATE.parent], check=True)
    programs = []
    try:
        shared = environment(STATE)
        programs += [Harbor(tasks, shared, STATE), BenchRunner(tasks, shared, STATE, bench)]
        found = {}
        for agent in AGENTS:
            for program in programs:
                say(f"{len(tasks)} tasks in {program.name} with {agent}")
                found[agent, program.name] = program.run(agent, concurrency)
    finally:
        clean_up(programs, had_base)
    none = Outcome(None, None, "no result")
    rows = [
        (task.name, agent, *(found[agent, program.name].get(task.name, none) for program in programs))
        for task in tasks
        for agent in AGENTS
    ]
    show(rows)
    different = sum(not theirs.equals(ours) for _, _, theirs, ours in rows)
    verdict = f"{different} of {len(rows)} differ" if different else f"all {len(rows)} equal"
    say(f"{verdict}, in {time.monotonic() - began:.0f} s; logs in {STATE.relative_to(ROOT)}")
    return not different


def exit_code(state: pathlib.Path, comparison: Callable[[], bool]) -> int:
    """Empties the folder, runs a comparison, and returns the command's exit code."""

    def stop(*_):
        raise Stopped

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    shutil.rmtree(state, ignore_errors=True)
    state.mkdir(parents=True)
    try:
        return 0 if comparison() else 1
    except Stopped:
        say("stopped")
        return 130


def main() -> int:
    parser = argparse.ArgumentParser(description="Compares rewards of Harbor and Bench Runner.")
    parser.add_argument("--bench", required=True, help="the command `bench`")
    parser.add_argument("--concurrency", type=int, default=3, help="episodes at once (default: 3)")
    parser.add_argument("tasks", nargs="*", help="task folders, or folders of tasks (default: those of this repository)")
    options = parser.parse_args()
    bench = pathlib.Path(options.bench).resolve()
    return exit_code(STATE, lambda: compare(find(options.tasks), bench, options.concurrency))


if __name__ == "__main__":
    sys.exit(main())
