"""Tests template.yaml end to end on a local AWS emulator, with the functions as processes (`make test-stack`).

Builds the functions and the end-to-end suite for this machine, starts MiniStack on loopback, deploys the template through
CloudFormation, runs the suite against API Gateway's address, and then the checks that need a deployed stack. Stops
everything that it started, also after failures. If it fails, target/stack-logs contains all logs.

Variables: CARGO, and STACK_PROFILE, the cargo profile. The default is dev, which `make test` has mostly built already.
"""

import json
import os
import pathlib
import secrets
import shlex
import shutil
import subprocess
import sys
import time
import traceback

sys.path[:0] = [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).resolve().parents[2] / "infra")]

from checks import Checks
from client import Client
from deployment import FUNCTIONS, Deployment
from edge import Edge
from emulator import REGION, Emulator, free_port
from hub import Hub

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = ROOT / "target"
LOGS = TARGET / "stack-logs"
STATE = TARGET / "stack"
# Scenarios in which a message fails all five deliveries, which takes seven minutes. They run in parallel to the others.
SLOW = "dead_letters::"
BEGAN = time.monotonic()


def say(text: str) -> None:
    print(f"[{time.monotonic() - BEGAN:6.1f} s] {text}", flush=True)


def build() -> dict[str, pathlib.Path]:
    """Builds all targets, so that it shares them with `make test`. Returns the binaries and the suite by name."""
    command = shlex.split(os.environ.get("CARGO", "cargo")) + [
        "build", "--workspace", "--all-targets", "--locked", "--message-format=json-render-diagnostics",
        "--profile", os.environ.get("STACK_PROFILE", "dev"),
    ]
    built = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    found = {}
    for line in built.stdout.splitlines():
        message = json.loads(line)
        if message.get("reason") != "compiler-artifact" or not message.get("executable"):
            continue
        target, is_test = message["target"], message["profile"]["test"]
        if target["name"] == "e2e" or ("bin" in target["kind"] and not is_test):
            found[target["name"]] = pathlib.Path(message["executable"])
    for name in ["e2e", "bench", *(f"bench-{function}" for function in FUNCTIONS)]:
        assert name in found, f"cargo did not build `{name}`"
    return found


class Suite:
    """Runs the end-to-end suite against the deployment."""

    def __init__(self, binary: pathlib.Path, deployment: Deployment, admin_secret: str, model_log: pathlib.Path, notes: pathlib.Path):
        self.binary = binary
        outputs = deployment.outputs
        self.environment = {
            "PATH": os.environ["PATH"],
            "BENCH_E2E_URL": deployment.api_url,
            "BENCH_E2E_ADMIN_SECRET": admin_secret,
            "BENCH_E2E_TABLE": outputs["Table"],
            "BENCH_E2E_CREDENTIALS_TABLE": outputs["CredentialsTable"],
            "BENCH_E2E_BUCKET": outputs["Bucket"],
            "BENCH_E2E_MODEL_LOG": str(model_log),
            "BENCH_E2E_NOTES": str(notes),
            "BENCH_QUEUE_PLANS_URL": outputs["PlansQueue"],
            "BENCH_QUEUE_ITEMS_URL": outputs["ItemsQueue"],
            "BENCH_QUEUE_TURNS_URL": outputs["TurnsQueue"],
            "BENCH_QUEUE_FINISHES_URL": outputs["FinishesQueue"],
            "AWS_ENDPOINT_URL": deployment.emulator.url,
            "AWS_REGION": REGION,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
        }

    def run(self, *args: str, **more: str) -> None:
        subprocess.run([str(self.binary), *args], env={**self.environment, **more}, check=True)


def collect(emulator: Emulator) -> None:
    """Saves the logs of the functions and the emulator."""
    logs = emulator.client("logs")
    for group in logs.describe_log_groups()["logGroups"]:
        name = group["logGroupName"]
        with (LOGS / (name.strip("/").replace("/", "_") + ".log")).open("w") as output:
            token = None
            while True:
                more = {"nextToken": token} if token else {}
                page = logs.filter_log_events(logGroupName=name, **more)
                output.writelines(event["message"].rstrip("\n") + "\n" for event in page["events"])
                if not (token := page.get("nextToken")):
                    break


def main() -> int:
    shutil.rmtree(LOGS, ignore_errors=True)
    shutil.rmtree(STATE, ignore_errors=True)
    LOGS.mkdir(parents=True)
    STATE.mkdir(parents=True)
    say("building the functions and the suite")
    binaries = build()
    say("starting MiniStack")
    emulator = Emulator(STATE / "ministack", LOGS / "ministack.log")
    model = sandboxes = edge = None
    hf_token = secrets.token_hex(16)
    hub = Hub(hf_token)
    try:
        say(f"MiniStack answers at {emulator.url}")
        model_port, sandy_port = free_port(), free_port()
        deployment = Deployment(
            emulator, ROOT / "template.yaml", STATE / "zips",
            {
                "OpenAiCompatibleBaseUrl": f"http://127.0.0.1:{model_port}/v1",
                "SandyBaseUrl": f"http://127.0.0.1:{sandy_port}",
                "HubUrl": hub.url,
            },
        )
        upload = lambda version: deployment.upload(binaries, version)
        upload("v1")
        say("zips: " + ", ".join(f"{name} {size / 1e6:.1f} MB" for name, size in deployment.bytes.items()))
        say(f"deployed template.yaml in {deployment.deploy():.1f} s; the API is at {deployment.api_url}")
        admin_secret = deployment.secret("AdminSecret")["ADMIN_SECRET"]
        # The secret must be complete before any function reads it.
        sandy_key = secrets.token_hex(16)
        deployment.put_secret("OperatorSecret", {"SANDY_API_KEY": sandy_key, "HF_TOKEN": hf_token})
        edge = Edge(deployment)
        sandboxes = subprocess.Popen(
            [str(binaries["bench"]), "sandy", "--port", str(sandy_port), "--data-dir", str(STATE / "sandboxes")],
            env={"PATH": os.environ["PATH"], "SANDY_API_KEY": sandy_key, "BENCH_SANDBOX_ENGINE": "none"},
            stdout=(LOGS / "sandboxes.log").open("w"), stderr=subprocess.STDOUT,
        )
        notes, model_log = STATE / "notes.jsonl", STATE / "model.log"
        suite = Suite(binaries["e2e"], deployment, admin_secret, model_log, notes)
        # One model server for the suite and all checks.
        model = subprocess.Popen(
            [str(binaries["e2e"]), "--serve-model", str(model_port)],
            env={"PATH": os.environ["PATH"], "BENCH_E2E_MODEL_LOG": str(model_log)},
        )
        client = Client(deployment.api_url, admin_secret)
        checks = Checks(deployment, client, edge.url, upload)
        summary: list[tuple[str, str]] = []

        def do(name: str, work) -> None:
            said = work() or "ok"
            say(f"{name}: {said}")
            summary.append((name, said))

        dead_letters = subprocess.Popen(
            [str(suite.binary), SLOW], env={**suite.environment, "BENCH_E2E_DEPLOYS": "true"},
            stdout=(LOGS / "dead_letters.log").open("w"), stderr=subprocess.STDOUT,
        )
        try:
            do("end-to-end suite", lambda: suite.run("--skip", SLOW))
            do("caller's key and KMS", checks.bearer_key_is_wrapped_by_kms)
            do("function URLs", checks.function_urls_answer_cloudfront_only)
            do("page and API", checks.page_and_api_share_the_address)
            do("suite through CloudFront", lambda: suite.run("exports::", "ownership::", BENCH_E2E_URL=edge.url))
            do("private exports", checks.private_exports_reach_their_owner)
            do("event streams", checks.event_streams_end_and_are_resumed)
            do("schedules", checks.scheduler_is_called)
            do("rate", checks.rate)
            do("deploy during a run", checks.deploy_in_the_middle_of_a_run)
            do("maintenance", lambda: suite.run(BENCH_E2E_MAINTENANCE="true"))
            do("after maintenance", checks.back_to_work)
            do("kill -9 of workers", checks.workers_are_killed)
            say("waiting for messages that nobody can handle; they are tried for seven minutes, and given up within five")
            code = dead_letters.wait(1200)
            print((LOGS / "dead_letters.log").read_text(), end="")
            assert code == 0, f"scenarios of {SLOW} failed"
            do("unreadable messages", lambda: checks.errors_of_unreadable_messages_are_logged(notes))
        finally:
            if dead_letters.poll() is None:
                dead_letters.kill()
                dead_letters.wait()
        print("\nThe deployed stack:")
        for name, said in summary:
            print(f"  {name}: {said}")
        say("passed")
        return 0
    except BaseException as error:
        traceback.print_exc()
        try:
            collect(emulator)
        except Exception as problem:  # The logs are a help; the failure is what matters.
            print(f"the functions' logs could not be read: {problem}", file=sys.stderr)
        say(f"FAILED; logs are in {LOGS}")
        if not isinstance(error, (Exception, KeyboardInterrupt)):
            raise
        return 1
    finally:
        for server in [model, sandboxes]:
            if server is not None:
                server.kill()
                server.wait()
        if edge is not None:
            edge.stop()
        hub.stop()
        emulator.stop()
        shutil.rmtree(STATE, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
