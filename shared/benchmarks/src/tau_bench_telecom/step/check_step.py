"""Checks the step script in the folder that it is given, with the domain `demo` and without the official package."""

import copy
import hashlib
import importlib.util
import json
import os
import sys
import tempfile

spec = importlib.util.spec_from_file_location("step", os.path.join(sys.argv[1], "step.py"))
step = importlib.util.module_from_spec(spec)
spec.loader.exec_module(step)

TASKS = ["lock_half_closed", "charged_too_long", "blocked_account_and_frozen_app", "bicycle_is_gone"]


def ask(op, task_id=None, domain="demo", package=None, **fields):
    request = {"version": 1, "domain": domain, "package": package, "op": op, "task_id": task_id, **fields}
    return step.respond(json.dumps(request))


def kind(response):
    assert set(response["error"]) == {"kind", "message"} and response["error"]["message"], response
    return response["error"]["kind"]


def call(name, arguments=None, requestor="user", id="1"):
    return {"id": id, "name": name, "arguments": arguments or {}, "requestor": requestor}


def continued(task_id, messages, *calls):
    """Lets a participant call tools, and returns the messages with the results."""
    response = ask("call", task_id, messages=messages, calls=list(calls))
    assert "error" not in response, response
    requestor = calls[0]["requestor"]
    return [*messages, {"role": requestor, "content": None, "tool_calls": list(calls)}, *response["results"]]


def played(task_id, actions):
    messages = [{"role": "assistant", "content": "Hello"}, {"role": "user", "content": "Help!"}]
    for at, action in enumerate(actions):
        messages = continued(task_id, messages, call(id=f"call{at}", **action))
    return [*messages, {"role": "user", "content": "Thanks. ###STOP###"}]


def rewarded(task_id, messages, reason="user_stop"):
    response = ask("evaluate", task_id, messages=messages, termination_reason=reason)
    return response["reward_info"]


# The list, and what opens a conversation.
assert ask("list")["tasks"] == TASKS and ask("list")["package"] is None
for task_id in TASKS:
    opened = ask("open", task_id)
    assert opened["greeting"] and opened["initial_messages"] == [], opened
    assert opened["stop_tokens"] == {"agent": [], "user": ["###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###"]}
    assert opened["agent"]["system"] == ask("open", TASKS[0])["agent"]["system"]
    assert opened["user"]["system"] not in [ask("open", other)["user"]["system"] for other in TASKS if other != task_id]
    names = [[tool["function"]["name"] for tool in opened[role]["tools"]] for role in ("agent", "user")]
    assert len(names[0]) == 6 and len(names[1]) == 5 and not set(names[0]) & set(names[1]), names
    for tool in opened["agent"]["tools"] + opened["user"]["tools"]:
        function = tool["function"]
        assert tool["type"] == "function" and function["description"], tool
        assert set(function["parameters"]["required"]) == set(function["parameters"]["properties"]), tool

# Gold actions have the full reward. Without any of them, or with one left out, a task has none.
for task_id in TASKS:
    actions = ask("gold", task_id)["actions"]
    messages = played(task_id, actions)
    assert not [message for message in messages if message.get("error")], messages
    full = rewarded(task_id, messages)
    assert full["reward"] == 1.0 and all(check["action_match"] for check in full["action_checks"]), full
    assert full["reward_breakdown"] == dict.fromkeys(full["reward_basis"], 1.0), full
    assert rewarded(task_id, played(task_id, []))["reward"] == 0.0, task_id
    assert rewarded(task_id, played(task_id, actions[:-1]))["reward"] == 0.0, task_id
    for reason in ("max_steps", "too_many_errors", "agent_error", "user_error", "timeout"):
        early = rewarded(task_id, messages, reason)
        assert early["reward"] == 0.0 and early["reward_basis"] is None and reason in early["info"]["note"], early
    assert rewarded(task_id, messages, "agent_stop")["reward"] == 1.0

# A wrong refund, in whole or in part, has no reward; a summary in other words has.
wrong = played("charged_too_long", [{"requestor": "assistant", "name": "refund", "arguments": {"ride_id": "T502", "cents": 100}}])
assert rewarded("charged_too_long", wrong)["reward"] == 0.0
words = played("bicycle_is_gone", [{"requestor": "assistant", "name": "hand_over", "arguments": {"summary": "stolen?"}}])
assert rewarded("bicycle_is_gone", words)["reward"] == 1.0

# Calls that fail have a result, and their replay gives the same one.
failing = [
    (call("fly"), "has no tool fly"),
    (call("end_ride", {"ride_id": "T501"}), "has no tool end_ride"),
    (call("press_lock", requestor="assistant"), "has no tool press_lock"),
    (call("__init__", {"task": {}}), "has no tool __init__"),
    (call("end_ride", requestor="assistant"), "needs the argument ride_id"),
    (call("end_ride", {"ride_id": "T501", "self": 1}, "assistant"), "has no argument self"),
    (call("end_ride", {"ride_id": ["T501"]}, "assistant"), "is of type string"),
    (call("refund", {"ride_id": "T502", "cents": True}, "assistant"), "is of type integer"),
    (call("refund", {"ride_id": "T502", "cents": 10**9}, "assistant"), "cost 2625 cents"),
    (call("end_ride", {"ride_id": "T501"}, "assistant"), "isn't closed"),
    (call("end_ride", {"ride_id": "T99\ud800\u0000"}, "assistant"), "no ride T99"),
]
messages = []
for wanted, text in failing:
    messages = continued("lock_half_closed", messages, wanted)
    assert messages[-1]["error"] and messages[-1]["content"].startswith("Error: ") and text in messages[-1]["content"], messages[-1]
many = [call("look_at_bicycle", id=f"m{at}") for at in range(10_000)]
messages = continued("lock_half_closed", messages, *many)
assert len(messages) == 2 * len(failing) + 10_001 and messages[-1]["content"] == "The lock is half closed."
messages = continued("lock_half_closed", messages, call("press_lock"))
assert continued("lock_half_closed", messages, call("look_at_bicycle"))[-1]["content"] == "The lock is closed."

# Recorded results have to be those of the replay.
for at, change in (
    (-1, {"content": "The lock is open."}),
    (-1, {"error": True}),
    (-1, {"content": None}),
    (1, {"content": "Error: other"}),
):
    changed = copy.deepcopy(messages)
    changed[at].update(change)
    assert kind(ask("call", "lock_half_closed", messages=changed, calls=[call("open_app")])) == "replay-differs"
    assert kind(ask("evaluate", "lock_half_closed", messages=changed, termination_reason="user_stop")) == "replay-differs"
assert kind(ask("call", "charged_too_long", messages=messages, calls=[call("open_app")])) == "replay-differs"

# Other ids, orders and missing results.
pair = messages[:2]
for broken in (
    pair[:1],
    pair[1:],
    pair + pair[1:],
    [pair[0], {**pair[1], "id": "2"}],
    [pair[0], {**pair[1], "requestor": "assistant"}],
    [pair[0], {"role": "user", "content": "x"}, pair[1]],
    [{**pair[0], "role": "system"}, pair[1]],
    [{**pair[0], "role": "assistant"}, pair[1]],
    [{**pair[0], "tool_calls": {}}, pair[1]],
    [{**pair[0], "tool_calls": [{"id": "1"}]}, pair[1]],
    [{**pair[0], "tool_calls": [call("fly", "x")]}, pair[1]],
    [{**pair[0], "content": 7}, pair[1]],
    [pair[0], {**pair[1], "error": "no"}],
    ["text"],
    {},
    None,
):
    assert kind(ask("call", TASKS[0], messages=broken, calls=[call("open_app")])) == "invalid-request", broken
for calls in ([], None, [7], [call("open_app", requestor="tool")], [{**call("open_app"), "arguments": "{}"}], [{**call("a"), "id": None}]):
    assert kind(ask("call", TASKS[0], messages=[], calls=calls)) == "invalid-request", calls

# Requests of another form.
assert kind(ask("open", "no_such_task")) == "unknown-task" and kind(ask("open", 7)) == "invalid-request"
assert kind(ask("open", TASKS[0], package="1.0.1")) == "invalid-request"
assert kind(ask("close", TASKS[0])) == "invalid-request" and kind(ask("open", TASKS[0], domain="retail")) == "invalid-request"
assert kind(ask("open", TASKS[0], version=2)) == "wrong-version"
assert kind(ask("evaluate", TASKS[0], messages=[], termination_reason="fun")) == "invalid-request"
assert kind(ask("evaluate", TASKS[0], messages=[], termination_reason=None)) == "invalid-request"
for text in ("", "[]", "{", "null", "7", "[" * 200_000):
    assert kind(step.respond(text)) == "invalid-request", text[:9]

# The official package is missing, broken, of another version, or has no such task.
os.environ.pop("SANDY_TAU2", None)
telecom = {"domain": "telecom", "package": "1.0.1"}
assert kind(ask("list", **telecom)) == "missing-package"
with tempfile.TemporaryDirectory() as folder:
    os.environ["SANDY_TAU2"] = folder
    marker = {"name": "tau2", "version": "1.0.0", "digest": "00"}

    def mark(text):
        with open(os.path.join(folder, "bench-tau2.json"), "w") as file:
            file.write(text)

    assert kind(ask("list", **telecom)) == "missing-package"
    for text in ("", "[]", "{}", "7"):
        mark(text)
        assert kind(ask("list", **telecom)) == "missing-package", text
    mark(json.dumps(marker))
    other = ask("list", **telecom)
    assert kind(other) == "wrong-version" and "1.0.0" in other["error"]["message"], other
    marker["version"] = "1.0.1"
    mark(json.dumps(marker))
    os.mkdir(os.path.join(folder, "tasks"))
    task_id = "[a]b|c[PERSONA:None]"
    gold = [{"requestor": "user", "name": "x", "arguments": {"y": 1}}]
    with open(os.path.join(folder, "tasks", "order.json"), "w") as file:
        json.dump([task_id], file)
    with open(os.path.join(folder, "tasks", hashlib.sha256(task_id.encode()).hexdigest() + ".json"), "w") as file:
        json.dump({"id": task_id, "evaluation_criteria": {"actions": gold}}, file)
    listed = ask("list", **telecom)
    assert listed["tasks"] == [task_id] and listed["package"] == marker, listed
    assert ask("gold", task_id, **telecom)["actions"] == gold
    for bad in ("../tasks/order", "\ud800"):
        assert kind(ask("gold", bad, **telecom)) == "unknown-task", bad
    assert kind(ask("open", task_id, **telecom)) == "missing-package"

print("all is as it should be")
