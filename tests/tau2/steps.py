"""Compares the step script with the official program: `steps.py FOLDER RESULTS`, with the folder that `bench sandy setup tau2` made.

For each conversation of the official program, the script has to give the same texts and tools for both models, the same results
of all calls, and the same reward.
"""

import concurrent.futures
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

folder, results = sys.argv[1:3]
STEP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../shared/benchmarks/src/tau_bench_telecom/step/step.py")


def step(**request):
    request = {"version": 1, "domain": "telecom", "package": "1.0.1", **request}
    with tempfile.TemporaryDirectory() as job:
        with open(os.path.join(job, "request.json"), "w") as file:
            json.dump(request, file)
        subprocess.run([os.path.join(folder, "bin/python3"), "-I", "-B", STEP], cwd=job, check=True, env={"SANDY_TAU2": folder, "PATH": "/usr/bin:/bin"})
        with open(os.path.join(job, "response.json")) as file:
            return json.load(file)


def without_random(messages):
    """Hides the numbers that the package draws at random for new bills."""
    known = {"B1001", "B1002", "B1003", "B1004", "B1005"}
    text = json.dumps(messages)
    for word in set(text.replace("\\", '"').split('"')):
        if len(word) == 9 and word[0] == "B" and all(c in "0123456789abcdef" for c in word[1:]) and word not in known:
            text = text.replace(word, "B_random")
    return json.loads(text)


def compare(name):
    task, official = conversations[name]["task"], done[name]
    if "error" in official:
        return [f"the official program fails: {official['error']}"]
    differences = []
    opened = step(op="open", task_id=task)
    if "error" in opened:
        return [f"open: {opened['error']['message']}"]
    for role in ("agent", "user"):
        about = all_seen.get(f"{name}--{role}", {}).get("about")
        if about and (about["system"], about["tools"]) != ([opened[role]["system"]], opened[role]["tools"]):
            differences.append(f"open: other text or tools of the {role}")
    if opened["greeting"] != official["messages"][0]["content"]:
        differences.append("open: another greeting")
    messages, calls = official["messages"], []
    for message in messages:
        calls += message.get("tool_calls") or []
    expected = [message for message in messages if message["role"] == "tool"]
    own = messages
    if calls:
        answer = step(op="call", task_id=task, messages=[], calls=calls)
        if "error" in answer:
            return differences + [f"call: {answer['error']['message']}"]
        got = answer["results"]
        if without_random(got) != without_random(expected):
            wrong = [(a, b) for a, b in zip(without_random(got), without_random(expected)) if a != b]
            differences.append(f"call: {wrong[:1]}")
        replies = iter(got)
        own = [next(replies) if message["role"] == "tool" else message for message in messages]
        # The last call alone, after a replay of those before it.
        last = max(at for at, message in enumerate(messages) if message.get("tool_calls"))
        replayed = step(op="call", task_id=task, messages=own[:last], calls=own[last]["tool_calls"])
        if "error" in replayed or replayed["results"] != own[last + 1 : last + 1 + len(own[last]["tool_calls"])]:
            differences.append(f"replay: {str(replayed.get('error', 'another result'))[:200]}")
    evaluated = step(op="evaluate", task_id=task, messages=own, termination_reason=official["termination_reason"])
    if "error" in evaluated:
        return differences + [f"evaluate: {evaluated['error']['message']}"]
    if evaluated["reward_info"] != official["reward_info"]:
        differences.append(f"evaluate: {evaluated['reward_info']} instead of {official['reward_info']}"[:400])
    return differences


with open(results, encoding="utf-8") as file:
    stored = json.load(file)
conversations, done, all_seen = stored["conversations"], stored["results"], stored["seen"]
listed = step(op="list")["tasks"]
problems = [] if listed == stored["order"] else ["list: another order of tasks"]
started, before = time.time(), resource.getrusage(resource.RUSAGE_CHILDREN)
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    for name, differences in zip(conversations, pool.map(compare, conversations)):
        problems += [f"{name}: {difference}" for difference in differences]
after = resource.getrusage(resource.RUSAGE_CHILDREN)
print(*problems, sep="\n")
rewards = [one["reward_info"]["reward"] for name, one in done.items() if name.startswith("gold-") and "reward_info" in one]
print(
    f"step script: {len(conversations)} conversations, {sum(len(one.get('messages', [])) for one in done.values())} messages, "
    f"{len(problems)} differences; gold rewards of 1: {rewards.count(1.0)} of {len(rewards)}; "
    f"{time.time() - started:.0f} s, {after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime:.0f} s of CPU"
)
sys.exit(bool(problems))
