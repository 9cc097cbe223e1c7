"""Checks that need a deployed stack, in addition to the end-to-end suite."""

import base64
import json
import os
import signal
import time
import urllib.error
import urllib.request

import botocore.exceptions
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

import hub
import upload_page
from client import Client
from deployment import Deployment
from edge import WITHOUT_REDIRECTS

KEY = "sk-stack-7b0f4e6a91d2"
NO_RUN = "00000000-0000-4000-8000-000000000000"
# Header to which CloudFront copies the viewer's Authorization header.
COPY = "x-bench-authorization"
# Times for checks that end workers in the middle of their work. As in the template, a message becomes visible again after
# its worker's timeout, but after 90 s instead of 91 min. A worker reserves 60 s of its timeout.
SHORT_TIMEOUT_S = 80
SHORT_VISIBILITY_S = 90


def get(url: str, headers: dict[str, str], method: str = "GET", send=urllib.request.urlopen) -> tuple[int, bytes]:
    """Returns status and body, also of error responses."""
    request = urllib.request.Request(url, headers=headers, method=method, data=b"" if method == "POST" else None)
    try:
        with send(request, timeout=300) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def events(stream: bytes) -> list[dict]:
    """Returns the messages of an event stream. `done` is true for the last one of a run that is over."""
    found = []
    for message in stream.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in message.splitlines() if not line.startswith(":"))
        if "data" in fields:
            found.append({**json.loads(fields["data"]), "id": fields.get("id"), "done": fields.get("event") == "done"})
    return found


class Checks:
    def __init__(self, deployment: Deployment, client: Client, edge_url: str, upload):
        self.deployment = deployment
        self.edge_url = edge_url
        self.emulator = deployment.emulator
        self.client = client
        self.upload = upload

    def bearer_key_is_wrapped_by_kms(self) -> str:
        """Checks that KMS opens a caller's key for its own run and for no other."""
        run = self.client.order("openai-compatible/hangs", "mmlu_pro", key=KEY, subset_count=1)
        table = self.deployment.outputs["CredentialsTable"]
        item = self.emulator.client("dynamodb").get_item(
            TableName=table, Key={"pk": {"S": f"RUN#{run}"}}, ConsistentRead=True
        )["Item"]
        assert KEY not in json.dumps(item, default=str)
        wrapped, sealed = (base64.b64decode(item[name]["S"]) for name in ("data_key", "sealed"))
        kms = self.emulator.client("kms")
        opened = kms.decrypt(CiphertextBlob=wrapped, EncryptionContext={"bench:for": run})
        clear = AESGCM(opened["Plaintext"]).decrypt(sealed[:12], sealed[12:], run.encode())
        assert clear.decode() == KEY
        for context in ({"bench:for": "another run"}, {}):
            try:
                kms.decrypt(CiphertextBlob=wrapped, EncryptionContext=context)
            except botocore.exceptions.ClientError as error:
                assert error.response["Error"]["Code"] == "InvalidCiphertextException", error
            else:
                raise AssertionError(f"KMS opened the data key for {context}")
        status, _ = self.client.call("POST", f"/api/runs/{run}/cancel", {}, KEY)
        assert status == 200
        end = time.monotonic() + 60
        while "Item" in self.emulator.client("dynamodb").get_item(
            TableName=table, Key={"pk": {"S": f"RUN#{run}"}}, ConsistentRead=True
        ):
            assert time.monotonic() < end, "the key of a canceled run was not removed"
            time.sleep(0.5)
        return "opened with the run's context, refused with others, removed with the run"

    def function_urls_answer_cloudfront_only(self) -> str:
        """Checks that only the distribution reaches the functions behind the URLs, and that it sends them no bodies."""
        copy = {"authorization": f"Bearer {KEY}", COPY: f"Bearer {KEY}"}
        for output, path in (
            ("ApiStreamUrl", f"/api/runs/{NO_RUN}/events?cursor="),
            ("ExportsStreamUrl", f"/api/runs/{NO_RUN}/export"),
        ):
            for headers in ({}, copy):
                status, _ = get(self.deployment.function_url(output) + path, headers)
                assert status == 403, (output, headers, status)
            status, body = get(self.edge_url + path, {})
            assert (status, json.loads(body)["detail"]) == (404, "Run not found"), (path, status, body)
            status, _ = get(self.edge_url + path, {}, method="POST")
            assert status == 403, (path, status)
        return "refused without a signature, and answer the distribution"

    def page_and_api_share_the_address(self) -> str:
        """Uploads the page, and checks the cases of its table of routes through the distribution."""
        uploaded, _ = upload_page.upload(self.emulator.client("s3"), self.deployment.outputs["PageBucket"])
        table = json.loads((upload_page.PAGE / "routes.json").read_text())
        index = (upload_page.PAGE / "index.html").read_bytes()
        # Python's server, which stands in for CloudFront, removes double slashes at the start of a path.
        cases = [case for case in table["cases"] if not case["path"].startswith("//")]
        for case in cases:
            path, answer = case["path"], case["answer"]
            headers = {} if case["accept"] is None else {"accept": case["accept"]}
            status, body = get(self.edge_url + path, headers, send=WITHOUT_REDIRECTS.open)
            # CloudFront answers addresses without a view with 200, too.
            if answer in ("page", "missing"):
                assert (status, body) == (200, index), (case, status, body[:200])
            elif answer == "api":
                same = get(self.deployment.api_url + path, headers, send=WITHOUT_REDIRECTS.open)
                assert (status, body) == same and body != index, (case, status, body[:200], same)
            else:
                file = upload_page.PAGE / path.removeprefix("/page/")
                expected = (200, file.read_bytes()) if file.is_file() else (403, b"AccessDenied")
                assert (status, body) == expected, (case, status, body[:200])
        return f"{uploaded} files, {len(cases)} cases"

    def private_exports_reach_their_owner(self) -> str:
        """Checks who can export items of a gated dataset: through CloudFront, which signs requests, and API Gateway."""
        # Gated benchmarks are for admins and listed callers.
        entry = {"name": "stack-owner", "key": KEY, "gated": True}
        status, made = self.client.call("POST", "/api/admin/access", entry)
        assert status == 201, (status, made)
        run = self.client.order("openai-compatible/answers-a", "gpqa_diamond", key=KEY, demo=False, subset_count=2)
        self.client.succeeded(run)
        owner, other = f"Bearer {KEY}", "Bearer sk-stack-somebody-else"
        for format in ("csv", "zip"):
            path = f"/api/runs/{run}/export?format={format}"
            for by, headers, expected in (
                (self.edge_url, {}, 401),
                (self.edge_url, {"authorization": other}, 403),
                (self.edge_url, {"authorization": owner}, 200),
                (self.edge_url, {"x-admin-secret": "wrong"}, 401),
                (self.edge_url, {"x-admin-secret": self.client.admin_secret}, 200),
                # Copies that viewers send have no effect: CloudFront and the functions behind API Gateway remove them.
                (self.edge_url, {COPY: owner}, 401),
                (self.edge_url, {COPY: owner, "authorization": other}, 403),
                (self.client.url, {COPY: owner}, 401),
                (self.client.url, {COPY: owner, "authorization": other}, 403),
                (self.client.url, {"authorization": owner}, 200),
            ):
                status, body = get(by + path, headers)
                assert status == expected, (by, path, list(headers), status, body[:500])
                if format == "csv":
                    assert (hub.WORD.encode() in body) == (expected == 200), (by, list(headers), body[:500])
                else:
                    assert body.startswith(b"PK") == (expected == 200), (by, list(headers), body[:500])
        for by in (self.edge_url, self.client.url):
            status, body = get(f"{by}/api/runs/{run}/export?format=pdf", {})
            assert status == 200 and body.startswith(b"%PDF-"), ("a report has no items", by, status, body[:500])
        return "owner and operator read them, others and copied keys do not; everybody reads the report"

    def event_streams_end_and_are_resumed(self) -> str:
        """Checks that a stream ends while its run is open, and that its client misses and repeats no event."""
        run = self.client.order("openai-compatible/hangs", "mmlu_pro", key=KEY, subset_count=1)
        self.client.until(run, "its start", lambda found: found["status"] == "running")
        path, headers, begun = f"{self.edge_url}/api/runs/{run}/events", {"authorization": f"Bearer {KEY}"}, time.monotonic()
        status, first = get(path, headers)
        seconds = time.monotonic() - begun
        assert status == 200, (status, first)
        assert self.client.run(run)["status"] == "running", "the run did not stay open"
        seen = events(first)
        assert first.endswith(b"retry: 1000\n\n") and seen and not seen[-1]["done"], first
        status, text = get(f"{self.edge_url}/api/runs/{run}/cancel", headers, method="POST")
        assert status == 200, (status, text)
        while not seen[-1]["done"]:
            assert time.monotonic() - begun < 600, "the run does not end"
            status, more = get(path, {**headers, "last-event-id": seen[-1]["id"]})
            assert status == 200, (status, more)
            seen += events(more)
        sequences = [event["sequence"] for event in seen[:-1]]
        assert sequences == list(range(1, len(sequences) + 1)), sequences
        return f"ended after {seconds:.0f} s; {len(sequences)} events, each once"

    def scheduler_is_called(self) -> str:
        """Checks that functions accept the input of each EventBridge schedule, and that EventBridge invokes them."""
        scheduler = self.emulator.client("scheduler")
        schedules = [
            scheduler.get_schedule(Name=entry["Name"])
            for entry in scheduler.list_schedules()["Schedules"]
            if entry["Name"].startswith(f"{self.deployment.name}-")
        ]
        tasks = {json.loads(schedule["Target"]["Input"])["task"] for schedule in schedules}
        assert tasks == {"tick", "reconcile", "sync-models", "reap", "drain"}, tasks
        functions, name = self.emulator.client("lambda"), self.deployment.outputs["SchedulerFunction"]
        dead_letters = self.deployment.outputs["DeadLettersFunction"]
        for task in sorted(tasks):
            function = dead_letters if task == "drain" else name
            answer = functions.invoke(FunctionName=function, Payload=json.dumps({"task": task}).encode())
            assert "FunctionError" not in answer, (task, answer["Payload"].read())
        for function in (name, dead_letters):
            answer = functions.invoke(FunctionName=function, Payload=b'{"task":"dance"}')
            assert "FunctionError" in answer, answer["Payload"].read()
        mappings = functions.list_event_source_mappings()["EventSourceMappings"]
        assert not any(mapping["EventSourceArn"].endswith("-dead") for mapping in mappings), mappings
        before, end = self._calls(name), time.monotonic() + 150
        while self._calls(name) <= before:
            assert time.monotonic() < end, "EventBridge did not call the scheduler within 150 s"
            time.sleep(1)
        return f"{', '.join(sorted(tasks))}; EventBridge fired"

    def _calls(self, function: str) -> int:
        return sum(line.startswith("START ") for line in self.log_of(function))

    def log_of(self, function: str) -> list[str]:
        logs = self.emulator.client("logs")
        lines, token = [], None
        while True:
            more = {"nextToken": token} if token else {}
            page = logs.filter_log_events(logGroupName=f"/aws/lambda/{function}", **more)
            lines += [event["message"] for event in page["events"]]
            if not (token := page.get("nextToken")):
                return lines

    def _scale_times(self, timeout_s: int, visibility_s: int) -> None:
        self.emulator.client("lambda").update_function_configuration(
            FunctionName=self.deployment.outputs["WorkerFunction"], Timeout=timeout_s
        )
        self.emulator.client("sqs").set_queue_attributes(
            QueueUrl=self.deployment.outputs["ItemsQueue"], Attributes={"VisibilityTimeout": str(visibility_s)}
        )

    def deploy_in_the_middle_of_a_run(self) -> str:
        """Checks that a run loses nothing if programs and settings are deployed meanwhile.

        AWS lets running invocations finish. The emulator ends them immediately, which is a stricter test.
        """
        self._scale_times(SHORT_TIMEOUT_S, SHORT_VISIBILITY_S)
        self.upload("v2")
        run = self.client.order("openai-compatible/slow", "aime_2025", samples=20)
        self.client.completed(run, 10)
        seconds = self.deployment.deploy(MaintenanceMode="true", MaintenanceMessage="Back on Friday.")
        completed = self.client.samples(self.client.run(run))
        assert completed < 480, "the run was over before the deployment was"
        found = self.client.succeeded(run)
        status, refused = self.client.call("POST", "/api/runs", {"model_id": "oracle", "demo": True})
        assert (status, refused["detail"]) == (503, "Back on Friday."), (status, refused)
        assert self.client.samples(found) == 480
        return f"{completed} of 480 samples were done when the new programs were there ({seconds:.1f} s); all succeeded"

    def back_to_work(self) -> str:
        self.deployment.deploy(MaintenanceMode="false", MaintenanceMessage="")
        self.client.succeeded(self.client.order("oracle", "mmlu_pro", subset_count=3))
        return "runs are taken again"

    def workers_are_killed(self) -> str:
        """Checks that a run survives `kill -9` of every worker, twice, in the middle of their batches."""
        worker = self.deployment.outputs["WorkerFunction"]
        self._scale_times(SHORT_TIMEOUT_S, SHORT_VISIBILITY_S)
        run = self.client.order("openai-compatible/slow", "aime_2025", samples=20)
        start, killed = time.monotonic(), []
        for completed in (10, 60):
            self.client.completed(run, completed)
            processes = self.emulator.processes_of(worker)
            for process in processes:
                os.kill(process, signal.SIGKILL)
            killed += processes
        assert killed, "there was no worker to kill"
        found = self.client.succeeded(run)
        assert self.client.samples(found) == 480
        again = time.monotonic() - start
        self._scale_times(900, 5460)
        return f"{len(killed)} processes; all 480 samples done after {again:.0f} s"

    def rate(self) -> str:
        """Measures samples per second from the order to the end of the run, without waiting for a model."""
        start = time.monotonic()
        run = self.client.order("oracle", "aime_2025", samples=40)
        found = self.client.succeeded(run)
        seconds = time.monotonic() - start
        samples = self.client.samples(found)
        assert samples == 960
        return f"{samples} samples in {seconds:.1f} s: {samples / seconds:.0f} samples/s"

    def errors_of_unreadable_messages_are_logged(self, notes) -> str:
        ids = [message for line in notes.read_text().splitlines() for message in json.loads(line)["errors"]]
        function = self.deployment.outputs["DeadLettersFunction"]
        for _ in range(5):
            log = "\n".join(self.log_of(function))
            missing = [message for message in ids if message not in log]
            if not missing:
                break
            # On a busy machine, the emulator logs the output of an invocation with that of the next one.
            self.emulator.client("lambda").invoke(FunctionName=function, Payload=b'{"task":"drain"}')
            time.sleep(1)
        assert ids and not missing, f"messages that were dropped without a word: {missing}"
        return f"{len(ids)} messages, each told of by dead-letters"

