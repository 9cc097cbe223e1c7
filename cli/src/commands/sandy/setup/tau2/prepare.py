"""Splits the tasks of the package in the folder that it is given, and compiles the package."""

import compileall
import hashlib
import json
import os
import py_compile
import sys

folder = sys.argv[1]
data = os.path.join(folder, "source", "data", "tau2", "domains", "telecom")
with open(os.path.join(data, "split_tasks.json"), encoding="utf-8") as file:
    base = set(json.load(file)["base"])
with open(os.path.join(data, "tasks.json"), encoding="utf-8") as file:
    tasks = [task for task in json.load(file) if task["id"] in base]
if {task["id"] for task in tasks} != base:
    sys.exit("tasks.json lacks tasks of the split base")
os.mkdir(os.path.join(folder, "tasks"))


def write(name, content):
    with open(os.path.join(folder, "tasks", name), "w", encoding="utf-8") as file:
        json.dump(content, file)


write("order.json", [task["id"] for task in tasks])
for task in tasks:
    write(hashlib.sha256(task["id"].encode()).hexdigest() + ".json", task)
# Items of the benchmark, in the order of a run.
with open(os.path.join(folder, "items.jsonl"), "w", encoding="utf-8") as file:
    file.writelines(json.dumps({"id": task["id"], "splits": ["base"]}) + "\n" for task in tasks)
# Nothing writes here afterwards, so that Python needn't compare times.
mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
if not compileall.compile_dir(os.path.join(folder, "source", "src"), quiet=1, invalidation_mode=mode):
    sys.exit("a file of the package can't be compiled")
