#!/usr/bin/env python3
"""Plays random scripted episodes of `terminus-2` with Harbor and with `bench-agents`, and compares requests,
keystrokes and trajectories.

Needs Python 3.12 with `harbor==0.25.0`, and that wheel unpacked into a folder (its digest is in `OFFICIAL_PROGRAM`):

    cargo build -p bench-agents --example scripted
    compare.py --wheel FOLDER --scripted target/debug/examples/scripted --seed 1 --episodes 300

What the agents' list of deviations names doesn't occur in the episodes, or isn't compared. Exits with 1 if anything
else differs.
"""

import argparse
import asyncio
import json
import logging
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import tenacity
from harbor.agents.terminus_2.terminus_2 import Terminus2
from harbor.agents.terminus_2.tmux_session import TmuxSession
from harbor.llms.base import ContextLengthExceededError, LLMResponse, OutputLengthExceededError
from harbor.models.agent.context import AgentContext
from harbor.models.metric import UsageInfo

VECTORS = pathlib.Path(__file__).parents[4] / "tests/data/vectors/terminus2_replies.jsonl"
# Lists of warnings whose order changes from process to process.
UNORDERED = re.compile(r"(?:- (?:Missing <|Unknown tag)[^\n]*\n?)+")


def tokens(text):
    return len(text.encode()) // 4 + 1


class Model:
    """Answers calls as the script says, and logs them."""

    def __init__(self, script, log):
        self.script, self.log, self.calls = script, log, iter(script["calls"])

    def get_model_context_limit(self):
        return self.script["context_tokens"]

    def get_model_output_limit(self):
        return self.script["output_tokens"]

    async def call(self, prompt, message_history=(), **_):
        messages = [{"role": m["role"], "content": m["content"]} for m in message_history]
        messages.append({"role": "user", "content": prompt})
        self.log.append(["call", messages])
        call = next(self.calls)
        if call["kind"] == "overflow":
            raise ContextLengthExceededError()
        if call["kind"] == "failure":
            raise RuntimeError("scripted")
        if call["kind"] == "cut":
            raise OutputLengthExceededError("scripted", truncated_response=call["text"])
        usage = UsageInfo(
            prompt_tokens=sum(tokens(m["content"]) for m in messages),
            completion_tokens=tokens(call["text"]),
            cache_tokens=0,
            cost_usd=0.0,
        )
        return LLMResponse(content=call["text"], usage=usage)


class Session(TmuxSession):
    """Shows the script's screens, one after each turn, and logs keystrokes."""

    def __init__(self, script, log):
        self.screens, self.log, self.screen = iter(script["screens"]), log, None
        self._previous_buffer = None

    async def is_session_alive(self):
        return self.screen["is_alive"]

    async def capture_pane(self, capture_entire=False):
        return self.screen["history" if capture_entire else "screen"]

    async def send_keys(self, keys, block=False, min_timeout_sec=0.0, max_timeout_sec=180.0):
        # A wait that isn't a number is none.
        self.log.append(["keys", keys, min_timeout_sec if min_timeout_sec == min_timeout_sec else 0.0])

    async def get_incremental_output(self):
        self.screen = next(self.screens)
        return await super().get_incremental_output()


async def play(script, folder):
    log = []
    agent = Terminus2(
        logs_dir=pathlib.Path(folder),
        model_name="openai/model",
        max_turns=script["turns_max"],
        parser_name=script["format"],
        enable_summarize=script["is_summarizing"],
        proactive_summarization_threshold=script["threshold_tokens"],
        suppress_max_turns_warning=True,
    )
    agent._llm, agent._session = Model(script, log), Session(script, log)
    agent._count_total_tokens = lambda chat: sum(tokens(m["content"]) for m in chat.messages)

    async def no_skills(_):
        return None

    agent._build_skills_section = no_skills
    try:
        await agent.run(script["instruction"], None, AgentContext())
    except (ContextLengthExceededError, RuntimeError):
        pass
    return {"log": log, "trajectory": json.loads((pathlib.Path(folder) / "trajectory.json").read_text())}


def make_script(rng):
    cases = [json.loads(line) for line in VECTORS.read_text().splitlines()]
    format = rng.choice(["json", "xml"])
    usable = [
        case
        for case in cases
        if case["format"] == format
        and "raises" not in case
        and not ("Unknown fields" in case["warning"] and case.get("warning_unordered"))
        and "code_points" not in json.dumps(case["commands"])
        and "ERROR:" not in case["warning"]
        and isinstance(case["analysis"], str)
        and isinstance(case["plan"], str)
    ]
    flawless = [case["reply"] for case in usable if not case["error"] and not case["warning"]]
    any_reply = [case["reply"] for case in usable]
    has_failures, has_cuts = rng.random() < 0.5, rng.random() < 0.3

    def call(is_first):
        x = rng.random()
        if is_first or x < 0.55:
            return {"kind": "reply", "text": rng.choice(flawless)}
        if x < 0.75:
            return {"kind": "reply", "text": rng.choice(any_reply)}
        if x < 0.80:
            return {"kind": "reply", "text": "y" * rng.randint(0, 6000)}
        if x < 0.90 and has_failures:
            return {"kind": "overflow" if x < 0.88 else "failure"}
        if x >= 0.95 and has_cuts:
            return {"kind": "cut", "text": "cut { <response> " * rng.randint(0, 3)}
        return {"kind": "reply", "text": rng.choice(flawless)}

    history, screens = "$ ", []
    for index in range(60):
        x = rng.random()
        if x < 0.1:
            history = "$ "
        elif x < 0.9:
            long = "z" * rng.choice([0, 0, 0, 100, 12000])
            lines = "é out %d\n" % rng.randint(0, 99) * rng.randint(0, 3)
            history = f"{history.rstrip()} cmd\n{lines}{long}\n$ " + "\n" * rng.randint(0, 4)
        is_alive = index == 0 or rng.random() > 0.01
        screens.append({"is_alive": is_alive, "history": history, "screen": history[-300:]})
    return {
        "format": format,
        "instruction": rng.choice(["Fix {it}.", 'Do\n"this" — é']),
        "context_tokens": rng.choice([9_000, 12_000, 20_000, 1_000_000]),
        "threshold_tokens": rng.choice([0, 1_500, 6_000]),
        "output_tokens": rng.choice([None, 4_096]),
        "turns_max": rng.randint(1, 14),
        "is_summarizing": rng.random() < 0.85,
        "calls": [call(index == 0) for index in range(200)],
        "screens": screens,
    }


def ordered(value):
    """Sorts warnings whose order changes, in all texts of a value."""
    if isinstance(value, str):
        return UNORDERED.sub(lambda found: "\n".join(sorted(found[0].strip().split("\n"))) + "\n", value)
    if isinstance(value, list):
        return [ordered(item) for item in value]
    if isinstance(value, dict):
        return {key: ordered(item) for key, item in value.items()}
    return value


def comparable_steps(trajectory, script):
    """Returns the steps of a trajectory without what is a deviation or our own wording."""
    short = tuple(f"{script['instruction']}\n\n{word}:" for word in ("Summary", "Current state"))
    steps = []
    for step in trajectory["steps"]:
        is_placeholder = step.get("llm_call_count") == 0 or step["message"].startswith("Technical difficulties.")
        if step["step_id"] > 1 and step["source"] == "user" and step["message"].startswith(short):
            continue
        calls = [
            (call["tool_call_id"], call["function_name"], {k: v or 0.0 for k, v in call["arguments"].items()})
            for call in step.get("tool_calls") or []
        ]
        results = (step.get("observation") or {}).get("results", [])
        seen = [(result.get("source_call_id"), result.get("content")) for result in results]
        message = "" if step["source"] == "system" or is_placeholder else step["message"]
        steps.append((step["source"], message, calls, seen))
    return steps


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", required=True, help="folder of the unpacked wheel")
    parser.add_argument("--scripted", required=True, help="the example `scripted`")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--episodes", type=int, default=100)
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    # Scripted failures are final; repeating them would take the answers of later calls.
    Terminus2._query_llm.retry.stop = tenacity.stop_after_attempt(1)
    rng = random.Random(options.seed)
    scripts = [make_script(rng) for _ in range(options.episodes)]
    lines = "".join(json.dumps(script) + "\n" for script in scripts)
    ours = subprocess.run(
        [options.scripted, options.wheel], input=lines, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    requests = different = 0
    for number, (script, line) in enumerate(zip(scripts, ours, strict=True)):
        own = json.loads(line)
        with tempfile.TemporaryDirectory() as folder:
            official = asyncio.run(play(script, folder))
        requests += sum(kind == "call" for kind, *_ in official["log"])
        if ordered(official["log"]) != ordered(own["log"]):
            different += 1
            print(f"episode {number}: other requests or keystrokes; it ended with {own['end']}")
            continue
        has_cuts = any(call["kind"] == "cut" for call in script["calls"])
        # Harbor keeps one of two summaries in a turn.
        summaries = [
            sum(step["source"] == "system" for step in result["trajectory"]["steps"]) for result in (official, own)
        ]
        if has_cuts or summaries[0] < summaries[1]:
            continue
        steps = [comparable_steps(result["trajectory"], script) for result in (official, own)]
        if ordered(json.loads(json.dumps(steps[0]))) != ordered(json.loads(json.dumps(steps[1]))):
            different += 1
            print(f"episode {number}: other trajectories; it ended with {own['end']}")
    print(f"{options.episodes} episodes with {requests} requests, {different} of them different")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
