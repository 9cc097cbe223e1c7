#!/usr/bin/env python3
"""Checks that the account can reserve the Lambda concurrency that a stage asks for.

Lambda refuses a reservation that leaves too little for the account's other functions, new accounts have a quota of 10 in
all, and CloudFormation finds out only in the middle of a deployment.
"""

import pathlib
import shlex
import sys
import tomllib

import boto3

from check_template import Template

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Parameters of the template and the functions that they reserve concurrency for.
RESERVATIONS = {"StreamConcurrency": "api-stream", "ExportConcurrency": "exports-stream"}
# Concurrency that Lambda keeps for functions without a reservation.
LEAST_UNRESERVED = 100
LEAST_UNRESERVED_OF_SMALL_QUOTAS = 10


def wanted(overrides, template):
    """Returns the concurrency that the stage reserves, by parameter."""
    given = dict(pair.split("=", 1) for pair in shlex.split(overrides))
    return {name: int(given.get(name, template.root["Parameters"][name]["Default"])) for name in RESERVATIONS}


def room(quota, unreserved, own):
    """Returns the concurrency that the stack can reserve: the unreserved part of the quota and the stack's own reservations,
    minus the part that must stay unreserved."""
    least = LEAST_UNRESERVED if quota > LEAST_UNRESERVED else LEAST_UNRESERVED_OF_SMALL_QUOTAS
    return max(unreserved + own - least, 0)


def reserved(functions, name):
    try:
        return functions.get_function_concurrency(FunctionName=name).get("ReservedConcurrentExecutions", 0)
    except functions.exceptions.ResourceNotFoundException:
        return 0


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: check_account.py STAGE")
    try:
        stage = tomllib.loads((ROOT / "samconfig.toml").read_text())[sys.argv[1]]["global"]["parameters"]
    except KeyError as missing:
        sys.exit(f"samconfig.toml: stage {sys.argv[1]} has no {missing}")
    asked = wanted(stage.get("parameter_overrides", ""), Template((ROOT / "template.yaml").read_text(encoding="utf-8")))
    if not sum(asked.values()):
        return
    functions = boto3.client("lambda", region_name=stage["region"])
    limits = functions.get_account_settings()["AccountLimit"]
    own = sum(reserved(functions, f"{stage['stack_name']}-{name}") for name in RESERVATIONS.values())
    free = room(limits["ConcurrentExecutions"], limits["UnreservedConcurrentExecutions"], own)
    if sum(asked.values()) > free:
        parameters = " and ".join(f"{name}={value}" for name, value in asked.items())
        sys.exit(
            f"{parameters} reserve more Lambda concurrency than the {free} that this account can reserve in {stage['region']} "
            f"(its quota is {limits['ConcurrentExecutions']}): ask for a larger quota (Service Quotas, \"Concurrent "
            "executions\"), or set both to 0 in samconfig.toml"
        )


if __name__ == "__main__":
    main()
