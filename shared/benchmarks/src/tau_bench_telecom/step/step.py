"""Takes one step of a conversation between an agent, a user and their tools. README.md describes the protocol.

Runs as `step.py [REQUEST [RESPONSE]]` in the folder of a job, with the files of the domains beside it.
"""

import importlib.util
import json
import os
import sys

VERSION = 1
DOMAINS = ("telecom", "demo")
OPERATIONS = ("list", "open", "gold", "call", "evaluate")
REQUESTORS = ("assistant", "user")
# Characters of a value in a message of an error.
SHOWN_MAX = 300


class StepError(Exception):
    """Reason why a step has no result: a kind of the protocol, and a sentence."""

    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = kind


def invalid(message):
    return StepError("invalid-request", message)


def shown(value):
    """Returns a value as a short text for a message."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN_MAX else text[:SHOWN_MAX] + " ..."


def checked_call(call, place, requestor=None):
    """Returns a call with exactly the fields of the protocol."""
    if not isinstance(call, dict):
        raise invalid(f"{place} is not an object")
    for name, kind in (("id", str), ("name", str), ("arguments", dict)):
        if not isinstance(call.get(name), kind):
            raise invalid(f"`{name}` of {place} is missing or of another type")
    by = call.get("requestor", requestor)
    if by not in REQUESTORS or (requestor and by != requestor):
        raise invalid(f"`requestor` of {place} is not {requestor or 'assistant or user'}")
    return {"id": call["id"], "name": call["name"], "arguments": call["arguments"], "requestor": by}


def checked_message(message, at):
    """Returns a message with exactly the fields of the protocol."""
    place = f"message {at}"
    if not isinstance(message, dict):
        raise invalid(f"{place} is not an object")
    role, content = message.get("role"), message.get("content")
    if content is not None and not isinstance(content, str):
        raise invalid(f"`content` of {place} is neither text nor null")
    if role == "tool":
        error = message.get("error", False)
        if not isinstance(message.get("id"), str) or message.get("requestor") not in REQUESTORS or not isinstance(error, bool):
            raise invalid(f"{place} lacks `id`, `requestor` or `error` of a result")
        return {"role": role, "id": message["id"], "requestor": message["requestor"], "content": content, "error": error}
    if role not in REQUESTORS:
        raise invalid(f"`role` of {place} is not assistant, user or tool")
    calls = message.get("tool_calls")
    if calls is not None and not isinstance(calls, list):
        raise invalid(f"`tool_calls` of {place} is not a list")
    calls = [checked_call(call, f"a call of {place}", role) for call in calls or []]
    return {"role": role, "content": content, "tool_calls": calls or None}


def checked_messages(request):
    messages = request.get("messages")
    if not isinstance(messages, list):
        raise invalid("`messages` is not a list")
    return [checked_message(message, at) for at, message in enumerate(messages)]


def recorded(messages):
    """Returns pairs of call and result, in order."""
    pairs, waiting = [], []
    for at, message in enumerate(messages):
        if message["role"] == "tool":
            if not waiting:
                raise invalid(f"message {at} is the result of no call")
            call = waiting.pop(0)
            if (message["id"], message["requestor"]) != (call["id"], call["requestor"]):
                raise invalid(f"message {at} is the result of another call than `{shown(call['id'])}`")
            pairs.append((call, message))
            continue
        if waiting:
            raise invalid(f"the call `{shown(waiting[0]['id'])}` before message {at} has no result")
        waiting = list(message["tool_calls"] or [])
    if waiting:
        raise invalid(f"the call `{shown(waiting[0]['id'])}` has no result")
    return pairs


def as_value(content):
    """Reads a result as JSON if it is JSON: only its meaning is compared."""
    try:
        return json.loads(content)
    except (TypeError, ValueError):
        return content


def replay(environment, pairs):
    """Repeats recorded calls on a new environment. Every result has to be the recorded one."""
    for call, result in pairs:
        content, error = environment.call(call)
        if content == result["content"] and error == result["error"]:
            continue
        if error != result["error"] or as_value(content) != as_value(result["content"]):
            raise StepError(
                "replay-differs",
                f"the call `{shown(call['id'])}` of `{shown(call['name'])}` gave {shown(content)} when it was repeated, "
                f"and {shown(result['content'])} before",
            )


def take(request, domain):
    """Returns the operation's part of the response."""
    operation = request["op"]
    if operation == "list":
        return {"tasks": domain.tasks()}
    task_id = request.get("task_id")
    if not isinstance(task_id, str):
        raise invalid("`task_id` is not text")
    task = domain.task(task_id)
    if operation == "open":
        return domain.open(task)
    if operation == "gold":
        return {"actions": domain.gold(task)}
    messages = checked_messages(request)
    pairs = recorded(messages)
    if operation == "evaluate":
        reason = request.get("termination_reason")
        if not isinstance(reason, str):
            raise invalid("`termination_reason` is not text")
        return {"reward_info": domain.evaluate(task, messages, reason)}
    calls = request.get("calls")
    if not isinstance(calls, list) or not calls:
        raise invalid("`calls` is not a list of calls")
    calls = [checked_call(call, f"call {at}") for at, call in enumerate(calls)]
    environment = domain.environment(task)
    replay(environment, pairs)
    results = []
    for call in calls:
        content, error = environment.call(call)
        results.append(
            {"role": "tool", "id": call["id"], "requestor": call["requestor"], "content": content, "error": error}
        )
    return {"results": results}


def load(name):
    """Loads the file of a domain beside this one. In its isolated mode, Python doesn't search there."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".py")
    spec = importlib.util.spec_from_file_location("bench_" + name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def respond(text):
    """Returns the response to a request."""
    response = {"version": VERSION, "package": None}
    try:
        try:
            request = json.loads(text)
        except ValueError:
            raise invalid("the request is not JSON") from None
        if not isinstance(request, dict):
            raise invalid("the request is not an object")
        if request.get("version") != VERSION:
            raise StepError("wrong-version", f"the request is of protocol {shown(request.get('version'))}, and this script of {VERSION}")
        if request.get("domain") not in DOMAINS:
            raise invalid(f"`domain` is not one of {', '.join(DOMAINS)}")
        if request.get("op") not in OPERATIONS:
            raise invalid(f"`op` is not one of {', '.join(OPERATIONS)}")
        domain = load(request["domain"]).domain(request.get("package"), StepError)
        response["package"] = domain.package
        response.update(take(request, domain))
    except StepError as error:
        response["error"] = {"kind": error.kind, "message": str(error)}
    except RecursionError:
        response["error"] = {"kind": "invalid-request", "message": "the request is nested too deeply"}
    except Exception as error:  # noqa: BLE001 - callers need a response to each request
        message = f"{type(error).__name__}: {shown(str(error))}"
        response["error"] = {"kind": "internal", "message": message}
    return response


def main(arguments):
    request = arguments[0] if arguments else "request.json"
    response = arguments[1] if len(arguments) > 1 else "response.json"
    with open(request, encoding="utf-8") as file:
        text = file.read()
    answer = respond(text)
    with open(response + ".tmp", "w", encoding="ascii") as file:
        json.dump(answer, file)
    os.replace(response + ".tmp", response)


if __name__ == "__main__":
    main(sys.argv[1:])
