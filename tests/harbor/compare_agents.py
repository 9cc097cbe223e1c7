"""Plays scripted models with the agent `terminus-2` in Harbor and in Bench Runner, and compares their requests,
commands and rewards (`make compare-harbor-agents`).

Both programs work on the same tasks, in containers of the engine of `DOCKER_HOST`, and ask the same local server
(`scripted_model.py`), which answers as `scripts.py` says and records requests. Both use the official messages: Bench
Runner loads them from Harbor's wheel, which the server has.

Equal have to be: the number of requests, also to that of the script; each request's messages and parameters; the commands
in the trajectories, also those of the last turn; the reward, also to that of the script. Prints a table, and exits with 1
if anything differs. Requests and logs stay in target/harbor-agents. Also prints the time from a reply to the next request in
both programs, beside the same commands in tmux by hand (`pace.py`).

One thing is replaced in messages, since containers have names of their own: the host name in the shell's prompt. Intended
differences are in `DEVIATIONS`, and are printed. HTTP headers aren't compared, nor networks, as in `compare.py`. Neither
program records the terminal, which would need asciinema in the image.
"""

import argparse
import difflib
import importlib.metadata
import json
import pathlib
import re
import subprocess
import sys
import time

import compare
import pace
from compare import ROOT, BenchRunner, Harbor, Outcome, docker, say
from scripted_model import ScriptedModels
from scripts import SCRIPTS, Script

STATE = ROOT / "target" / "harbor-agents"
AGENT = "terminus-2"
# Names of the programs in addresses and files.
NAMES = {Harbor.name: "harbor", BenchRunner.name: "bench"}
OPTIONS = {"record_terminal_session": "false"}
PROMPT = re.compile(r"\b(root|worker)@[0-9A-Za-z_.-]+:")
# Fields that only requests of Bench Runner have, with the value that they must have, and why.
DEVIATIONS = {
    "stream": (True, "Bench Runner streams replies, so that a silent provider is noticed"),
    "stream_options": ({"include_usage": True}, "needed for token counts of streamed replies"),
}
# Tests print rewards with six digits.
REWARD_DIFFERENCE_MAX = 1e-6
# Lines of a difference that are printed.
DIFFERENCE_LINES_MAX = 20


class Played:
    """Result of one script in one program."""

    def __init__(self, program: Harbor | BenchRunner, script: Script, outcome: Outcome, requests: list[dict]):
        self.outcome = outcome
        self.commands = commands(program)
        self.requests = [comparable(program.name, request) for request in requests]
        path = STATE / script.name / f"{NAMES[program.name]}-requests.json"
        path.write_text(json.dumps(self.requests, indent=1, ensure_ascii=False))

    def text(self) -> str:
        count = len(self.requests)
        calls = sum(map(len, self.commands.values()))
        return f"{self.outcome.text(self.outcome)}, {count} request{'' if count == 1 else 's'}, {calls} calls"

    def has_reward(self, script: Script) -> bool:
        reward = (self.outcome.rewards or {}).get("reward")
        return reward is not None and abs(reward - script.reward) < REWARD_DIFFERENCE_MAX

    def is_scripted(self, script: Script) -> bool:
        return len(self.requests) == len(script.replies) and self.has_reward(script)


def commands(program: Harbor | BenchRunner) -> dict[str, list[tuple[str, dict]]]:
    """Returns the calls in an episode's trajectories, by their paths: keystrokes with durations, and completions."""
    if isinstance(program, Harbor):
        episodes = list((program.jobs / AGENT).glob("*__*"))
    else:
        written = program.state / "artifacts"
        command = [program.bench, "artifacts", "latest", "--out", written, "--data-dir", program.data]
        subprocess.run([str(part) for part in command], env=program.environment, capture_output=True)
        episodes = [path for path in written.rglob("1") if path.is_dir()]
    found = {}
    for episode in episodes:
        for path in sorted(episode.rglob("trajectory.json")):
            steps = json.loads(path.read_text())["steps"]
            calls = [call for step in steps for call in step.get("tool_calls") or []]
            found[str(path.relative_to(episode))] = [(call["function_name"], call["arguments"]) for call in calls]
    return found


def comparable(program: str, request: dict) -> dict:
    """Returns a request with host names replaced, and without intended deviations."""
    compared = dict(request)
    if program == BenchRunner.name:
        for field, (value, _) in DEVIATIONS.items():
            if compared.get(field) == value:
                del compared[field]
    compared["messages"] = [
        {key: PROMPT.sub(r"\1@HOST:", value) if isinstance(value, str) else value for key, value in message.items()}
        for message in request["messages"]
    ]
    return compared


def lines(request: dict) -> list[str]:
    """Returns a request as lines to compare: parameters first, then each line of each message."""
    parameters = [f"{key} = {json.dumps(value)}" for key, value in sorted(request.items()) if key != "messages"]
    messages = []
    for message in request["messages"]:
        others = {key: value for key, value in message.items() if key != "content"}
        messages += [f"--- {json.dumps(others, sort_keys=True)}", *str(message.get("content")).splitlines()]
    return parameters + messages


def difference(theirs: list[dict], ours: list[dict]) -> list[str]:
    """Returns the first difference between two episodes' requests; empty if there is none."""
    for number, (one, other) in enumerate(zip(theirs, ours), 1):
        if one != other:
            names = (f"{Harbor.name}, request {number}", f"{BenchRunner.name}, request {number}")
            found = list(difflib.unified_diff(lines(one), lines(other), *names, lineterm="", n=1))
            return found or [f"request {number} differs in line breaks or types"]
    if len(theirs) != len(ours):
        return [f"{len(theirs)} requests in {Harbor.name}, {len(ours)} in {BenchRunner.name}"]
    return []


def folder(task: str) -> pathlib.Path:
    """Returns the folder of a sample task, or of a task of `compare.py`."""
    sample = ROOT / "sample-tasks" / task
    return sample if sample.exists() else ROOT / "tests" / "harbor" / "tasks" / task


def harbor_options(script: Script, models: ScriptedModels) -> list[str]:
    options = OPTIONS | script.options | {"api_base": models.model_url(NAMES[Harbor.name], script)}
    if script.settings:
        options["llm_call_kwargs"] = json.dumps(script.settings)
    pairs = [part for name, value in options.items() for part in ("--agent-kwarg", f"{name}={value}")]
    return ["--model", f"openai/{script.name}", *pairs]


def bench_options(script: Script, models: ScriptedModels) -> list[str]:
    options = OPTIONS | script.options
    pairs = [part for name, value in options.items() for part in ("--agent-option", f"{name}={value}")]
    model = ["--model", f"openai-compatible/{script.name}", "--base-url", models.model_url(NAMES[BenchRunner.name], script)]
    settings = [f"--{name.replace('_', '-')}={value}" for name, value in script.settings.items()]
    return [*model, *pairs, *settings]


def download_wheel() -> pathlib.Path:
    """Downloads the wheel of the Harbor that is installed here; Bench Runner checks its digest."""
    folder = STATE / "wheel"
    wanted = f"harbor=={importlib.metadata.version('harbor')}"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*command, "--only-binary", ":all:", "--dest", str(folder), wanted], check=True)
    return next(folder.glob("*.whl"))


def play(scripts: list[Script], bench: pathlib.Path) -> bool:
    began = time.monotonic()
    had_base = bool(docker("image", "ls", "--quiet", compare.BASE_IMAGE))
    subprocess.run([ROOT / "tests" / "harbor" / "base.sh", STATE.parent], check=True)
    models = ScriptedModels(scripts, download_wheel())
    # A package index on this machine, and a key that Harbor's client asks for.
    shared = compare.environment(STATE) | {"BENCH_PYPI_URL": models.url, "OPENAI_API_KEY": "unused"}
    programs, rows = [], []
    try:
        pairs = []
        for script in scripts:
            state, tasks = STATE / script.name, [folder(script.task)]
            state.mkdir()
            programs += [harbor := Harbor(tasks, shared, state), ours := BenchRunner(tasks, shared, state, bench)]
            pairs.append((script, (harbor, harbor_options(script, models)), (ours, bench_options(script, models))))
        for script, *both in pairs:
            played = []
            for program, options in both:
                say(f"{script.name} in {program.name}")
                found = program.run(AGENT, 1, options)
                outcome = found.get(script.task, Outcome(None, None, "no result"))
                requests = models.requests.get((NAMES[program.name], script.name), [])
                played.append(Played(program, script, outcome, requests))
            rows.append((script, *played))
        if any(script.name == pace.SCRIPT for script in scripts):
            pace.show({program: models.gaps.get((name, pace.SCRIPT), []) for program, name in NAMES.items()})
        if not models.has_served_wheel:
            say(f"{BenchRunner.name} did not load the official messages")
            return False
    finally:
        compare.clean_up(programs, had_base)
        models.close()
    return show(rows, began)


def show(rows: list[tuple[Script, Played, Played]], began: float) -> bool:
    table = [("script", "task", Harbor.name, BenchRunner.name, "requests", "commands", "rewards")]
    different = 0
    for script, theirs, ours in rows:
        found = difference(theirs.requests, ours.requests)
        # Without any trajectory there is nothing to compare.
        has_equal_commands = bool(theirs.commands) and theirs.commands == ours.commands
        verdicts = [not found, has_equal_commands, theirs.outcome.equals(ours.outcome)]
        marks = ["equal" if verdict else "DIFFERENT" for verdict in verdicts]
        if all(verdicts) and not (theirs.is_scripted(script) and ours.is_scripted(script)):
            verdicts, marks = [False], ["NOT THE SCRIPT'S"] * 3
        different += not all(verdicts)
        table.append((script.name, script.task, theirs.text(), ours.text(), *marks))
        if found:
            (STATE / script.name / "difference.txt").write_text("\n".join(found) + "\n")
            say(f"{script.name}:")
            say("\n".join(f"  {line[:200]}" for line in found[:DIFFERENCE_LINES_MAX]))
    widths = [max(map(len, column)) for column in zip(*table)]
    for row in table:
        say("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    say("not compared: host names in prompts")
    for field, (value, reason) in DEVIATIONS.items():
        say(f"intended: `{field}` = {json.dumps(value)} only in {BenchRunner.name}: {reason}")
    verdict = f"{different} of {len(rows)} differ" if different else f"all {len(rows)} equal"
    say(f"{verdict}, in {time.monotonic() - began:.0f} s; requests and logs in {STATE.relative_to(ROOT)}")
    return not different


def main() -> int:
    parser = argparse.ArgumentParser(description="Compares requests and rewards of terminus-2 in Harbor and Bench Runner.")
    parser.add_argument("--bench", required=True, help="the command `bench`")
    parser.add_argument("scripts", nargs="*", help=f"scripts (default: all): {', '.join(s.name for s in SCRIPTS)}")
    options = parser.parse_args()
    scripts = [script for script in SCRIPTS if not options.scripts or script.name in options.scripts]
    if len(scripts) < len(set(options.scripts)):
        parser.error("unknown script")
    return compare.exit_code(STATE, lambda: play(scripts, pathlib.Path(options.bench).resolve()))


if __name__ == "__main__":
    sys.exit(main())
