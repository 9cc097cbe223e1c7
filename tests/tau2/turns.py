"""Compares our turns with the official program: `turns.py BENCH RESULTS [NAME...]`, with the package in BENCH_HOME.

Each conversation of the official program is held by `bench run` with the same scripted models. Every request to a model has to have
the same thread of messages, with the same tools, seed and temperature, and the reason for the end and the reward have to be the same.
"""

import glob
import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import server

bench, results = os.path.abspath(sys.argv[1]), sys.argv[2]
with open(results, encoding="utf-8") as file:
    stored = json.load(file)
names = sys.argv[3:] or [name for name in stored["conversations"] if not name.startswith("gold-")]
address, seen = server.serve(stored["conversations"])


def plain(message):
    """Returns what a message says, without fields that are empty in one form of the request and absent in another."""
    calls = [
        (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"])) for call in message.get("tool_calls") or []
    ]
    return [message["role"], message.get("content") or "", calls, message.get("tool_call_id")]


def threads(requests):
    # A request that is repeated is the same one.
    return [list(one) for one in dict.fromkeys(json.dumps([plain(message) for message in request]) for request in requests)]


def held(name, folder):
    """Holds a conversation with our turns. Returns the verdict's detail."""
    items = os.path.join(folder, "items.jsonl")
    with open(items, "w") as file:
        file.writelines(json.dumps({"id": task}) + "\n" for task in stored["order"])
    command = [
        bench, "run", "--benchmark", "tau_bench_telecom", "--dataset", f"tau_bench_telecom={items}", "--samples", "1",
        "--item", f"#{stored['order'].index(stored['conversations'][name]['task'])}", "--model", f"openai-compatible/{name}--agent",
        "--user-model", f"openai-compatible/{name}--user", "--base-url", address, "--out", folder,
    ]
    environment = {**os.environ, "OPENAI_COMPATIBLE_BASE_URL": address}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=900)
    found = glob.glob(os.path.join(folder, "*.zip"))
    if not found:
        raise RuntimeError(f"no results: {done.stderr[-600:]} {done.stdout[-300:]}")
    return found[0]


def graded(archive):
    """Returns the reason for the end and the reward of the only sample in an archive."""
    def search(value, key):
        if isinstance(value, dict):
            if key in value:
                yield value[key]
            for inner in value.values():
                yield from search(inner, key)
        elif isinstance(value, list):
            for inner in value:
                yield from search(inner, key)

    ends, rewards = set(), set()
    with zipfile.ZipFile(archive) as file:
        for name in file.namelist():
            if not name.endswith((".json", ".jsonl")):
                continue
            text = file.read(name).decode()
            for line in text.splitlines() if name.endswith(".jsonl") else [text]:
                try:
                    value = json.loads(line)
                except ValueError:
                    continue
                ends.update(end for end in search(value, "termination_reason") if isinstance(end, str))
                ends.update(end for end in search(value, "termination") if isinstance(end, str))
                rewards.update(reward for reward in search(value, "reward") if isinstance(reward, (int, float)))
    return ends, rewards


problems, started, requests = [], time.time(), 0
for name in names:
    official = stored["results"][name]
    with tempfile.TemporaryDirectory() as folder:
        try:
            ends, rewards = graded(held(name, folder))
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            problems.append(f"{name}: {error}")
            print(problems[-1])
            continue
    found = []
    for role in ("agent", "user"):
        about, other = (one.get(f"{name}--{role}", {}).get("about") or {} for one in (seen, stored["seen"]))
        found += [f"another `{key}` in requests to the {role}" for key in {**about, **other} if about.get(key) != other.get(key)]
        ours = threads(seen.get(f"{name}--{role}", {}).get("requests", []))
        theirs = threads(stored["seen"].get(f"{name}--{role}", {}).get("requests", []))
        requests += len(ours)
        if ours != theirs:
            at = next((at for at, (one, other) in enumerate(zip(ours, theirs)) if one != other), min(len(ours), len(theirs)))
            found.append(f"{len(ours)} requests to the {role} instead of {len(theirs)}, the first other one is {at}")
            if at < min(len(ours), len(theirs)):
                one, other = json.loads("".join(ours[at])), json.loads("".join(theirs[at]))
                found += [f"  ours {a} theirs {b}"[:600] for a, b in zip(one, other) if a != b][:1] + ([f"  {len(one)} messages instead of {len(other)}"] if len(one) != len(other) else [])
    if official["termination_reason"] not in ends:
        found.append(f"ended by {sorted(ends)} instead of {official['termination_reason']}")
    if official["reward_info"]["reward"] not in rewards:
        found.append(f"reward {sorted(rewards)} instead of {official['reward_info']['reward']}")
    problems += [f"{name}: {one}" for one in found]
    print(f"{name}: {'; '.join(found) or 'equal'}", flush=True)
print(f"turns: {len(names)} conversations, {requests} requests, {len(problems)} differences; {time.time() - started:.0f} s")
sys.exit(bool(problems))
