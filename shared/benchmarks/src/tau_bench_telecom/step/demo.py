"""The domain `demo`: riders of rented bicycles call a help desk. All texts, tools, tasks and rewards are our own."""

import copy
import inspect
import json

GREETING = "Hello, this is the bicycle help desk. What happened?"
STOP = "###STOP###"
TRANSFER = "###TRANSFER###"
OUT_OF_SCOPE = "###OUT-OF-SCOPE###"
CENTS_PER_MINUTE = 15
ENDED_BY_PARTICIPANTS = ("user_stop", "agent_stop")
REASONS = ENDED_BY_PARTICIPANTS + (
    "max_steps", "timeout", "too_many_errors", "agent_error", "user_error", "infrastructure_error",
    "context_window_exceeded", "unexpected_error",
)

AGENT_SYSTEM = f"""You work at the help desk of a company that rents bicycles. Riders write to you. Follow these rules:

- Each of your messages is either text for the rider or tool calls, never both.
- Find the rider by phone number before you do anything else.
- You see accounts and rides. You don't see the bicycle or the rider's app: ask the rider to look and to act.
- A ride can be ended only after its lock has closed. A lock that is half closed needs a firm press.
- A ride costs {CENTS_PER_MINUTE} cents a minute. If the lock closed before the ride was ended, refund the minutes between, and
  nothing else. A ride is refunded once.
- An account with debts stays blocked. Riders pay in their app. Unblock the account when nothing is owed.
- If a bicycle isn't where the rider left it, don't end the ride. Hand the case over with `hand_over`, and tell the rider.
"""

USER_SYSTEM = f"""You play a person who rents bicycles and writes to the help desk. Stay in the part that the scenario describes.

- Each of your messages is either text for the help desk or tool calls, never both.
- Use tools only when the help desk asks you to look at something or to do something, and report what you see.
- Tell what you know when you are asked for it, not all of it at once.
- When your case is solved, write {STOP}. When you are handed over to somebody else, write {TRANSFER}. If the scenario doesn't
  say enough to go on, write {OUT_OF_SCOPE}.

Scenario:
"""

WORLD = {
    "riders": {
        "R17": {"name": "Ada Moor", "phone": "0161 441", "balance_cents": 0, "blocked": False},
        "R23": {"name": "Ben Okoro", "phone": "0161 552", "balance_cents": 0, "blocked": False},
        "R31": {"name": "Chris Lund", "phone": "0161 663", "balance_cents": -480, "blocked": True},
    },
    "rides": {
        "T501": {
            "rider_id": "R17", "bicycle": "B8", "started": "09:02", "ended": None, "lock_closed": None, "refunded_cents": 0,
        },
        "T502": {
            "rider_id": "R23", "bicycle": "B9", "started": "07:45", "ended": "10:40", "lock_closed": "08:10",
            "refunded_cents": 0,
        },
    },
    "handed_over": [],
    "user": {"rider_id": None, "bicycle": "gone", "app": "works"},
}

TASKS = [
    {
        "id": "lock_half_closed",
        "user": {"rider_id": "R17", "bicycle": "half closed", "app": "works"},
        "scenario": "You are Ada Moor, phone 0161 441. You put the bicycle back, yet your app says that the ride goes on. "
        "You stand beside the bicycle.",
        "actions": [("user", "look_at_bicycle", {}), ("user", "press_lock", {}), ("assistant", "end_ride", {"ride_id": "T501"})],
        "compared": {},
        "assertions": [("ride_has_ended", {"ride_id": "T501"}, True)],
        "reward_basis": ["ENV_ASSERTION"],
    },
    {
        "id": "charged_too_long",
        "user": {"rider_id": "R23", "bicycle": "closed", "app": "works"},
        "scenario": "You are Ben Okoro, phone 0161 552. You closed the lock at ten past eight this morning, and were charged "
        "until twenty to eleven. You want the difference back.",
        "actions": [("assistant", "refund", {"ride_id": "T502", "cents": 150 * CENTS_PER_MINUTE})],
        "compared": {},
        "assertions": [("refunded", {"ride_id": "T502"}, 150 * CENTS_PER_MINUTE)],
        "reward_basis": ["ENV_ASSERTION"],
    },
    {
        "id": "blocked_account_and_frozen_app",
        "user": {"rider_id": "R31", "bicycle": "closed", "app": "frozen"},
        "scenario": "You are Chris Lund, phone 0161 663. You can't rent a bicycle. Your app doesn't react at all. You are ready "
        "to pay what you owe.",
        "actions": [
            ("user", "restart_app", {}),
            ("user", "pay_debts", {}),
            ("assistant", "unblock_account", {"rider_id": "R31"}),
        ],
        "compared": {},
        "assertions": [("is_blocked", {"rider_id": "R31"}, False), ("balance", {"rider_id": "R31"}, 0)],
        "reward_basis": ["ENV_ASSERTION"],
    },
    {
        "id": "bicycle_is_gone",
        "user": {"rider_id": "R17", "bicycle": "gone", "app": "works"},
        "scenario": "You are Ada Moor, phone 0161 441. You left the bicycle in front of a shop for a minute, and it isn't there "
        "anymore. You want your ride to be ended.",
        "actions": [("assistant", "hand_over", {"summary": "The bicycle of ride T501 is gone."})],
        # The summary is in the agent's own words.
        "compared": {"hand_over": []},
        "assertions": [("ride_has_ended", {"ride_id": "T501"}, False)],
        "reward_basis": ["ENV_ASSERTION", "ACTION"],
    },
]


class Refused(Exception):
    """A call that the world doesn't allow. Its text is the call's result."""


class World:
    """State of accounts, rides, a bicycle and an app, with the tools of both roles."""

    def __init__(self, task):
        self.state = copy.deepcopy(WORLD)
        self.state["user"] = dict(task["user"])

    def _rider(self, rider_id):
        if rider_id not in self.state["riders"]:
            raise Refused(f"there is no rider {rider_id}")
        return self.state["riders"][rider_id]

    def _ride(self, ride_id):
        if ride_id not in self.state["rides"]:
            raise Refused(f"there is no ride {ride_id}")
        return self.state["rides"][ride_id]

    def _app(self):
        if self.state["user"]["app"] == "frozen":
            raise Refused("the app doesn't react")

    # Tools of the agent.

    def find_rider(self, phone: str):
        """Finds a rider, with the rider's rides, by phone number."""
        for rider_id, rider in self.state["riders"].items():
            if rider["phone"].replace(" ", "") == phone.replace(" ", ""):
                rides = [ride_id for ride_id, ride in self.state["rides"].items() if ride["rider_id"] == rider_id]
                return {"rider_id": rider_id, **rider, "rides": rides}
        raise Refused(f"no rider has the phone number {phone}")

    def get_ride(self, ride_id: str):
        """Returns a ride: its bicycle, its times, the time at which its lock closed, and what was refunded."""
        return {"ride_id": ride_id, **self._ride(ride_id)}

    def end_ride(self, ride_id: str):
        """Ends a ride whose lock has closed."""
        ride = self._ride(ride_id)
        if ride["ended"] is not None:
            raise Refused(f"ride {ride_id} has ended already")
        if ride["lock_closed"] is None:
            raise Refused(f"the lock of bicycle {ride['bicycle']} isn't closed")
        ride["ended"] = ride["lock_closed"]
        return f"Ride {ride_id} ended at {ride['ended']}."

    def refund(self, ride_id: str, cents: int):
        """Refunds a part of the price of a ride that has ended."""
        ride = self._ride(ride_id)
        if ride["ended"] is None:
            raise Refused(f"ride {ride_id} hasn't ended")
        if ride["refunded_cents"]:
            raise Refused(f"ride {ride_id} was refunded already")
        price = (minutes(ride["ended"]) - minutes(ride["started"])) * CENTS_PER_MINUTE
        if not 0 < cents <= price:
            raise Refused(f"ride {ride_id} cost {price} cents")
        ride["refunded_cents"] = cents
        self._rider(ride["rider_id"])["balance_cents"] += cents
        return f"Refunded {cents} cents of ride {ride_id}."

    def unblock_account(self, rider_id: str):
        """Unblocks the account of a rider who owes nothing."""
        rider = self._rider(rider_id)
        if rider["balance_cents"] < 0:
            raise Refused(f"rider {rider_id} owes {-rider['balance_cents']} cents")
        rider["blocked"] = False
        return f"The account of {rider['name']} can be used again."

    def hand_over(self, summary: str):
        """Hands the case over to a colleague, with a summary."""
        self.state["handed_over"].append(summary)
        return "The case was handed over."

    # Tools of the user.

    def look_at_bicycle(self):
        """Looks at the bicycle and its lock."""
        bicycle = self.state["user"]["bicycle"]
        return "There is no bicycle here." if bicycle == "gone" else f"The lock is {bicycle}."

    def press_lock(self):
        """Presses the bolt of the lock firmly."""
        user = self.state["user"]
        if user["bicycle"] == "gone":
            raise Refused("there is no bicycle here")
        if user["bicycle"] == "half closed":
            user["bicycle"] = "closed"
            for ride in self.state["rides"].values():
                if ride["rider_id"] == user["rider_id"] and ride["lock_closed"] is None:
                    ride["lock_closed"] = "09:31"
        return "The lock is closed."

    def open_app(self):
        """Opens the app and reads its first page."""
        self._app()
        rider_id = self.state["user"]["rider_id"]
        rider = self._rider(rider_id)
        if rider["blocked"]:
            return f"Account blocked. You owe {-min(rider['balance_cents'], 0)} cents."
        running = [r for r, ride in self.state["rides"].items() if ride["rider_id"] == rider_id and ride["ended"] is None]
        return f"Your ride {running[0]} goes on." if running else "You have no ride."

    def restart_app(self):
        """Closes the app and starts it again."""
        self.state["user"]["app"] = "works"
        return "The app starts."

    def pay_debts(self):
        """Pays what is owed, in the app."""
        self._app()
        rider = self._rider(self.state["user"]["rider_id"])
        owed = -min(rider["balance_cents"], 0)
        if not owed:
            raise Refused("nothing is owed")
        rider["balance_cents"] = 0
        return f"Paid {owed} cents."

    # Values for assertions.

    def ride_has_ended(self, ride_id):
        return self.state["rides"][ride_id]["ended"] is not None

    def refunded(self, ride_id):
        return self.state["rides"][ride_id]["refunded_cents"]

    def is_blocked(self, rider_id):
        return self.state["riders"][rider_id]["blocked"]

    def balance(self, rider_id):
        return self.state["riders"][rider_id]["balance_cents"]

    def call(self, call):
        """Executes a call. Returns the result's text, and true if the call failed."""
        names = TOOLS[call["requestor"]]
        if call["name"] not in names:
            return f"Error: {call['requestor']} has no tool {call['name']}", True
        tool = getattr(self, call["name"])
        problem = wrong_arguments(tool, call["arguments"])
        if problem:
            return f"Error: {problem}", True
        try:
            result = tool(**call["arguments"])
        except Refused as refused:
            return f"Error: {refused}", True
        return result if isinstance(result, str) else json.dumps(result), False


TOOLS = {
    "assistant": ["find_rider", "get_ride", "end_ride", "refund", "unblock_account", "hand_over"],
    "user": ["look_at_bicycle", "press_lock", "open_app", "restart_app", "pay_debts"],
}
TYPES = {str: "string", int: "integer"}


def minutes(clock):
    hours, rest = clock.split(":")
    return 60 * int(hours) + int(rest)


def wrong_arguments(tool, arguments):
    """Returns the reason why a tool can't be called with these arguments, or `None`."""
    parameters = inspect.signature(tool).parameters
    for name in arguments:
        if name not in parameters:
            return f"{tool.__name__} has no argument {name}"
    for name, parameter in parameters.items():
        if name not in arguments:
            return f"{tool.__name__} needs the argument {name}"
        if type(arguments[name]) is not parameter.annotation:
            return f"the argument {name} of {tool.__name__} is of type {TYPES[parameter.annotation]}"
    return None


def schemas(role):
    """Returns the schemas of a role's tools, as the chat API takes them."""
    functions = []
    for name in TOOLS[role]:
        tool = getattr(World, name)
        parameters = [p for p in inspect.signature(tool).parameters.values() if p.name != "self"]
        properties = {parameter.name: {"type": TYPES[parameter.annotation]} for parameter in parameters}
        schema = {"type": "object", "properties": properties, "required": list(properties)}
        functions.append({"type": "function", "function": {"name": name, "description": tool.__doc__, "parameters": schema}})
    return functions


class Demo:
    """The domain, as the step script uses it."""

    package = None

    def __init__(self, error):
        self.error = error

    def tasks(self):
        return [task["id"] for task in TASKS]

    def task(self, task_id):
        for task in TASKS:
            if task["id"] == task_id:
                return task
        raise self.error("unknown-task", f"the domain demo has no task `{task_id[:200]}`")

    def open(self, task):
        return {
            "agent": {"system": AGENT_SYSTEM, "tools": schemas("assistant")},
            "user": {"system": USER_SYSTEM + task["scenario"], "tools": schemas("user")},
            "greeting": GREETING,
            "initial_messages": [],
            "stop_tokens": {"agent": [], "user": [STOP, TRANSFER, OUT_OF_SCOPE]},
        }

    def gold(self, task):
        return [{"requestor": by, "name": name, "arguments": arguments} for by, name, arguments in task["actions"]]

    def environment(self, task):
        return World(task)

    def evaluate(self, task, messages, reason):
        if reason not in REASONS:
            raise self.error("invalid-request", f"`termination_reason` is not one of {', '.join(REASONS)}")
        if reason not in ENDED_BY_PARTICIPANTS:
            note = f"the conversation ended early: {reason}"
            return {"reward": 0.0, "env_assertions": None, "action_checks": None, "reward_basis": None,
                    "reward_breakdown": None, "info": {"note": note}}
        calls = [call for message in messages for call in message.get("tool_calls") or []]
        results = [message for message in messages if message["role"] == "tool"]
        world = World(task)
        for call, result in zip(calls, results):
            content, error = world.call(call)
            if (content, error) != (result["content"], result["error"]):
                raise self.error("replay-differs", f"the call `{call['id'][:200]}` gave another result when it was repeated")
        assertions = []
        for name, arguments, expected in task["assertions"]:
            met = getattr(world, name)(**arguments) == expected
            assertion = {"env_type": "assistant", "func_name": name, "arguments": arguments, "assert_value": expected}
            assertions.append({"env_assertion": assertion, "met": met, "reward": float(met)})
        actions = []
        for by, name, arguments in task["actions"]:
            compared = task["compared"].get(name, list(arguments))
            expected = {key: arguments[key] for key in compared}
            found = any(
                (call["requestor"], call["name"]) == (by, name)
                and {key: call["arguments"].get(key) for key in compared} == expected
                for call in calls
            )
            action = {"requestor": by, "name": name, "arguments": arguments, "compare_args": compared}
            actions.append({"action": action, "action_match": found, "action_reward": float(found)})
        parts = {
            "ENV_ASSERTION": float(all(assertion["met"] for assertion in assertions)),
            "ACTION": float(all(action["action_match"] for action in actions)),
        }
        breakdown = {basis: parts[basis] for basis in task["reward_basis"]}
        reward = 1.0
        for part in breakdown.values():
            reward *= part
        return {"reward": reward, "env_assertions": assertions, "action_checks": actions,
                "reward_basis": task["reward_basis"], "reward_breakdown": breakdown, "info": None}


def domain(package, error):
    if package is not None:
        raise error("invalid-request", "`package` is not null, and the domain demo has no package")
    return Demo(error)
