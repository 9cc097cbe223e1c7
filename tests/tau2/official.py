"""Runs scripted conversations through the official program, in its own environment: `official.py SOURCE RESULTS`."""

import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
source, results = sys.argv[1:3]
os.environ["TAU2_DATA_DIR"] = os.path.join(os.path.abspath(source), "data")
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

from loguru import logger  # noqa: E402

logger.remove()

import scenarios  # noqa: E402
import server  # noqa: E402

conversations = scenarios.build(source)
address, seen = server.serve(conversations)
os.environ["OPENAI_API_BASE"] = address
os.environ["OPENAI_API_KEY"] = "none"

import tau2.utils.utils  # noqa: E402
from tau2.data_model.simulation import TextRunConfig  # noqa: E402
from tau2.runner import build_text_orchestrator, get_tasks, run_simulation  # noqa: E402

tasks = {task.id: task for task in get_tasks(task_set_name="telecom", task_split_name="base")}
order = list(tasks)
done, started = {}, time.time()
for name, conversation in conversations.items():
    config = TextRunConfig(
        domain="telecom", agent="llm_agent", user="user_simulator", llm_agent=f"openai/{name}--agent", llm_user=f"openai/{name}--user",
        llm_args_agent={"temperature": 0.0}, llm_args_user={"temperature": 0.0}, max_steps=200, max_errors=10,
    )
    try:
        simulation = run_simulation(build_text_orchestrator(config, tasks[conversation["task"]], seed=626729))
    except Exception as error:
        done[name] = {"error": f"{type(error).__name__}: {error}"[:300]}
        continue
    keep = ("role", "content", "tool_calls", "id", "requestor", "error")
    messages = [message.model_dump(mode="json") for message in simulation.messages]
    done[name] = {
        "messages": [{key: message[key] for key in keep if key in message} for message in messages],
        "termination_reason": simulation.termination_reason.value,
        "reward_info": simulation.reward_info.model_dump(mode="json"),
    }
with open(results, "w", encoding="utf-8") as file:
    json.dump({"order": order, "conversations": conversations, "results": done, "seen": seen, "seconds": time.time() - started}, file)
ends = {}
for one in done.values():
    end = one.get("termination_reason", "error")
    ends[end] = ends.get(end, 0) + 1
print(f"official program: {len(done)} conversations in {time.time() - started:.0f} s: {ends}")
