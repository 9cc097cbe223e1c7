"""Client of the HTTP API."""

import json
import time
import urllib.error
import urllib.request

RUN_SECONDS_MAX = 600


class Client:
    def __init__(self, url: str, admin_secret: str):
        self.url = url
        self.admin_secret = admin_secret

    def call(self, method: str, path: str, body=None, key: str | None = None) -> tuple[int, dict]:
        headers = {"content-type": "application/json"}
        headers |= {"authorization": f"Bearer {key}"} if key else {"x-admin-secret": self.admin_secret}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            text = error.read()
            return error.code, json.loads(text) if text.startswith(b"{") else {"text": text.decode(errors="replace")}

    def order(self, model: str, benchmark: str, key: str | None = None, **more) -> str:
        body = {"model_id": model, "selected_benchmarks": [benchmark], "demo": True, "samples": 1, **more}
        status, run = self.call("POST", "/api/runs", body, key)
        assert status == 201, (status, run)
        return run["id"]

    def run(self, run: str) -> dict:
        status, found = self.call("GET", f"/api/runs/{run}")
        assert status == 200, (status, found)
        return found

    def until(self, run: str, what: str, is_so, seconds: float = RUN_SECONDS_MAX) -> dict:
        end = time.monotonic() + seconds
        while True:
            found = self.run(run)
            if is_so(found):
                return found
            assert time.monotonic() < end, f"waited too long for {what}: {json.dumps(found)[:2000]}"
            time.sleep(0.25)

    @staticmethod
    def samples(found: dict) -> int:
        """Returns the number of samples that are over. (A run's progress counts items.)"""
        return sum(benchmark["completed_samples"] for benchmark in found["benchmarks"])

    def completed(self, run: str, count: int) -> dict:
        return self.until(run, f"{count} samples", lambda found: self.samples(found) >= count)

    def succeeded(self, run: str) -> dict:
        found = self.until(run, "its end", lambda found: found["status"] not in ("queued", "running"))
        assert found["status"] == "succeeded", json.dumps(found)[:2000]
        assert found["coverage"] == 1.0, json.dumps(found)[:2000]
        return found
