"""Compares our turns with the official program: `turns.py BENCH RESULTS [NAME...]`, with the package in BENCH_HOME.

Each conversation of the official program is held by `bench run` with the same scripted models. Every request to a model has to have
the same thread of messages, with the same tools, seed and temperature, and the reason for the end and the reward have to be the same.
Then the oracle plays the gold actions of all tasks in one run, and has to get the official rewards.
"""

import concurrent.futures
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
names = sys.argv[3:] or list(stored["conversations"])
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


def run(folder, *arguments):
    """Runs `bench run` on tasks of the base split. Returns the archive with the results."""
    items = os.path.join(folder, "items.jsonl")
    with open(items, "w") as file:
        file.writelines(json.dumps({"id": task}) + "\n" for task in stored["order"])
    command = [
        bench, "run", "--benchmark", "tau_bench_telecom", "--dataset", f"tau_bench_telecom={items}", "--samples", "1", "--out", folder, *arguments,
    ]
    environment = {**os.environ, "OPENAI_COMPATIBLE_BASE_URL": address}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=1800)
    found = glob.glob(os.path.join(folder, "*.zip"))
    if not found:
        raise RuntimeError(f"no results: {done.stderr[-600:]} {done.stdout[-300:]}")
    return found[0]


def held(name, folder):
    """Holds a conversation with our turns. Returns the archive with the results."""
    return run(
        folder, "--item", f"#{stored['order'].index(stored['conversations'][name]['task'])}", "--model", f"openai-compatible/{name}--agent",
        "--user-model", f"openai-compatible/{name}--user", "--base-url", address,
    )


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


def rewards_by_task(archive):
    """Returns the reward of each task in an archive."""
    with zipfile.ZipFile(archive) as file:
        [benchmark] = json.loads(file.read("results.json"))["benchmarks"]
    return {item["source_id"]: item["score"] for item in benchmark["items"]}


def compare(name):
    """Holds a conversation. Returns the differences from the official one, and the number of requests to models."""
    official = stored["results"][name]
    with tempfile.TemporaryDirectory() as folder:
        try:
            ends, rewards = graded(held(name, folder))
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            return [str(error)], 0
    found, requests = [], 0
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
                found += [f"  ours {a} theirs {b}"[:600] for a, b in zip(one, other) if a != b][:1]
                found += [f"  {len(one)} messages instead of {len(other)}"] if len(one) != len(other) else []
    if official["termination_reason"] not in ends:
        found.append(f"ended by {sorted(ends)} instead of {official['termination_reason']}")
    if official["reward_info"]["reward"] not in rewards:
        found.append(f"reward {sorted(rewards)} instead of {official['reward_info']['reward']}")
    return found, requests


def oracle():
    """Lets the oracle play the gold actions of all tasks. Returns the tasks whose reward isn't the official one."""
    official = {one["task"]: stored["results"][name]["reward_info"]["reward"] for name, one in stored["conversations"].items() if name.startswith("gold-")}
    with tempfile.TemporaryDirectory() as folder:
        try:
            rewards = rewards_by_task(run(folder, "--model", "oracle"))
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            return [f"oracle: {error}"]
    problems = [f"oracle: {task} has the reward {rewards.get(task)} instead of {reward}" for task, reward in official.items() if rewards.get(task) != reward]
    print(f"oracle: {len(rewards)} tasks, {list(rewards.values()).count(1.0)} with the reward 1, {len(problems)} differences")
    return problems


problems, started, requests = [], time.time(), 0
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    for name, (found, asked) in zip(names, pool.map(compare, names)):
        problems += [f"{name}: {one}" for one in found]
        requests += asked
        print(f"{name}: {'; '.join(found) or 'equal'}", flush=True)
print(f"turns: {len(names)} conversations, {requests} requests, {len(problems)} differences; {time.time() - started:.0f} s")
if not sys.argv[3:]:
    problems += oracle()
sys.exit(bool(problems))
