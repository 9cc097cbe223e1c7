"""The domain `telecom`: calls the official package, which holds the tools, the texts, the tasks and the reward."""

import hashlib
import json
import os
import sys
import types
import uuid

DOMAIN = "telecom"
# Name of the variable with the folder that `bench sandy setup tau2` made.
VARIABLE = "SANDY_TAU2"
MARKER = "bench-tau2.json"
# Folder of the base tasks, each in a file named by the SHA-256 of its id, and of their list.
TASKS = "tasks"
ORDER = "order.json"


class Models(types.ModuleType):
    """Takes the place of the library that asks models. No model is asked in a sandbox."""

    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)

        def unavailable(*_, **__):
            if name == "disable_cache":
                return None
            raise RuntimeError(f"a sandbox asks no model, so {self.__name__}.{name} is not available")

        return unavailable


class Numbers:
    """Takes the place of the module `uuid` where the package draws ids: a replay has to give the same ones."""

    def __init__(self, seed):
        self.seed, self.drawn = seed, 0

    def uuid4(self):
        self.drawn += 1
        return uuid.UUID(bytes=hashlib.sha256(f"{self.seed}\n{self.drawn}".encode()).digest()[:16], version=4)


class Environment:
    """The official environment, after the initial actions of a task."""

    def __init__(self, official, tool_call):
        self.official, self.tool_call = official, tool_call

    def call(self, call):
        message = self.official.get_response(self.tool_call(**call))
        return message.content, message.error


class Telecom:
    """The domain, as the step script uses it."""

    def __init__(self, folder, package, error):
        self.folder, self.package, self.error = folder, package, error

    def read_json(self, name):
        with open(os.path.join(self.folder, TASKS, name), encoding="utf-8") as file:
            return json.load(file)

    def tasks(self):
        return self.read_json(ORDER)

    def task(self, task_id):
        name = hashlib.sha256(task_id.encode("utf-8", "surrogatepass")).hexdigest() + ".json"
        try:
            return self.read_json(name)
        except FileNotFoundError:
            raise self.error("unknown-task", f"the domain telecom has no base task `{task_id[:200]}`") from None

    def load(self, *without):
        """Makes the modules of the package importable, without those that the operation doesn't need."""
        os.environ["TAU2_DATA_DIR"] = os.path.join(self.folder, "source", "data")
        for name in ("litellm", "litellm.caching", "litellm.caching.caching", "litellm.main"):
            sys.modules[name] = Models(name)
        for name in without:
            sys.modules[name] = None
        # The package's own first file imports everything.
        package = types.ModuleType("tau2")
        package.__path__ = [os.path.join(self.folder, "source", "src", "tau2")]
        sys.modules["tau2"] = package
        try:
            from loguru import logger

            logger.remove()
            from tau2.data_model.message import ToolCall
            from tau2.data_model.tasks import Task
            from tau2.domains.telecom import environment, tools
        except ImportError as error:
            raise self.error("missing-package", f"the sandbox can't load the package: {error}") from None
        self.tools, self.environments, self.tool_call, self.validate = tools, environment, ToolCall, Task.model_validate

    def official_environment(self, task):
        environment = self.environments.get_environment_manual_policy()
        state = task.initial_state
        environment.set_state(
            initialization_data=state.initialization_data if state else None,
            initialization_actions=state.initialization_actions if state else None,
            message_history=(state.message_history or []) if state else [],
        )
        return environment

    def environment(self, task):
        # A library that is loaded for a text in logs would load these two.
        self.load("pandas", "numpy")
        self.tools.uuid = Numbers(task["id"])
        return Environment(self.official_environment(self.validate(task)), self.tool_call)

    def open(self, task):
        self.load()
        from tau2.agent.llm_agent import LLMAgent
        from tau2.user import user_simulator

        greeting = self.greeting()
        task = self.validate(task)
        environment = self.environments.get_environment_manual_policy()
        agent = LLMAgent(tools=environment.get_tools(), domain_policy=environment.get_policy(), llm="none")
        user_tools = environment.get_user_tools(include=task.user_tools) or None
        user = user_simulator.UserSimulator(llm="none", instructions=str(task.user_scenario), tools=user_tools)
        history = (task.initial_state.message_history or []) if task.initial_state else []
        stops = [user_simulator.STOP, user_simulator.TRANSFER, user_simulator.OUT_OF_SCOPE]
        return {
            "agent": {"system": agent.system_prompt, "tools": [tool.openai_schema for tool in agent.tools]},
            "user": {"system": user.system_prompt, "tools": [tool.openai_schema for tool in user.tools or []]},
            "greeting": greeting,
            "initial_messages": [message.model_dump(mode="json") for message in history],
            "stop_tokens": {"agent": [], "user": stops},
        }

    def greeting(self):
        from tau2.orchestrator.orchestrator import DEFAULT_FIRST_AGENT_MESSAGE

        return DEFAULT_FIRST_AGENT_MESSAGE.content

    def gold(self, task):
        actions = task["evaluation_criteria"]["actions"] or []
        return [
            {"requestor": action.get("requestor", "assistant"), "name": action["name"], "arguments": action["arguments"]}
            for action in actions
        ]

    def evaluate(self, task, messages, reason):
        self.load()
        from tau2.data_model.message import AssistantMessage, ToolMessage, UserMessage
        from tau2.data_model.simulation import SimulationRun, TerminationReason
        from tau2.evaluator.evaluator import EvaluationType, evaluate_simulation

        if reason not in {one.value for one in TerminationReason}:
            raise self.error("invalid-request", f"`termination_reason` is none of the package: {reason[:200]}")
        kinds = {"assistant": AssistantMessage, "user": UserMessage, "tool": ToolMessage}
        self.tools.uuid = Numbers(task["id"])
        simulation = SimulationRun(
            id="0", task_id=task["id"], start_time="", end_time="", duration=0.0, termination_reason=reason,
            messages=[kinds[message["role"]](**message) for message in messages],
        )
        try:
            reward_info = evaluate_simulation(
                simulation=simulation, task=self.validate(task), evaluation_type=EvaluationType.ALL, solo_mode=False,
                domain=DOMAIN,
            )
        except ValueError as error:
            if "Returned:" in str(error) and "Expected:" in str(error):
                raise self.error("replay-differs", "the official evaluator got another result of a recorded call") from None
            raise
        return reward_info.model_dump(mode="json")


def domain(version, error):
    folder = os.environ.get(VARIABLE)
    if not folder:
        raise error("missing-package", "the sandbox has no tau2 package; run `bench sandy setup tau2` on its host")
    try:
        with open(os.path.join(folder, MARKER), encoding="utf-8") as file:
            marker = json.load(file)
        package = {key: marker[key] for key in ("name", "version", "digest")}
    except (OSError, ValueError, KeyError, TypeError) as problem:
        reason = f"the sandbox has no usable tau2 package: {problem}; run `bench sandy setup tau2` on its host"
        raise error("missing-package", reason) from None
    if package["version"] != version:
        raise error(
            "wrong-version",
            f"the sandbox has tau2 {package['version']}, and {version} is needed; run `bench sandy setup tau2` on its host",
        )
    return Telecom(folder, package, error)
