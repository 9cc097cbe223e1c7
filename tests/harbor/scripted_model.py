"""HTTP server with scripted models, for `compare_agents.py`.

Request k of an episode gets reply k of its script. Each pair of a program and a script has an address of its own,
`/PROGRAM/SCRIPT/v1/chat/completions`, so a request belongs to one episode. `/simple/harbor/` is a package index with
Harbor's wheel, from which Bench Runner loads the official messages of `terminus-2`.
"""

import http.server
import json
import pathlib
import threading
import time

from scripts import DONE, Reply, Script

# Statuses of a provider that answers again later, and its wait in seconds. Without the header, Bench Runner waits longer.
BUSY = (429, 503)
RETRY_AFTER = "1"


class ScriptedModels:
    def __init__(self, scripts: list[Script], wheel: pathlib.Path):
        self.scripts = {script.name: script for script in scripts}
        self.wheel = wheel
        # Bodies of requests by program and script.
        self.requests: dict[tuple[str, str], list[dict]] = {}
        # Seconds from each reply to the next request, by program and script.
        self.gaps: dict[tuple[str, str], list[float]] = {}
        self._replied: dict[tuple[str, str], float] = {}
        self.has_served_wheel = False
        self._lock = threading.Lock()
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def model_url(self, program: str, script: Script) -> str:
        return f"{self.url}/{program}/{script.name}/v1"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def take(self, program: str, name: str, body: dict) -> Reply:
        """Records a request and returns its reply; after the end of the script, one that ends the episode."""
        with self._lock:
            if (program, name) in self._replied:
                gap = time.monotonic() - self._replied[program, name]
                self.gaps.setdefault((program, name), []).append(gap)
            requests = self.requests.setdefault((program, name), [])
            requests.append(body)
            replies = self.scripts[name].replies
            return replies[len(requests) - 1] if len(requests) <= len(replies) else DONE[0]

    def note_reply(self, program: str, name: str) -> None:
        """Notes that a reply was sent now."""
        with self._lock:
            self._replied[program, name] = time.monotonic()

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        models = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self, status: int, kind: str, content: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(content)))
                if status in BUSY:
                    self.send_header("Retry-After", RETRY_AFTER)
                self.end_headers()
                self.wfile.write(content)

            def answer_json(self, status: int, value: dict) -> None:
                self.answer(status, "application/json", json.dumps(value).encode())

            def do_GET(self):
                if self.path == "/simple/harbor/":
                    link = f'<a href="../../files/{models.wheel.name}">{models.wheel.name}</a>'
                    self.answer(200, "text/html", link.encode())
                elif self.path == f"/files/{models.wheel.name}":
                    models.has_served_wheel = True
                    self.answer(200, "application/zip", models.wheel.read_bytes())
                else:
                    self.answer_json(404, {"error": {"message": f"nothing at {self.path}"}})

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                parts = self.path.strip("/").split("/")
                if len(parts) != 5 or parts[1] not in models.scripts or parts[2:] != ["v1", "chat", "completions"]:
                    self.answer_json(404, {"error": {"message": f"nothing at {self.path}"}})
                    return
                reply = models.take(parts[0], parts[1], body)
                if reply.error_code:
                    error = {"message": f"refused: {reply.error_code}", "code": reply.error_code}
                    self.answer_json(reply.status, {"error": error})
                elif body.get("stream"):
                    events = [*stream(reply, body), "[DONE]"]
                    text = "".join(f"data: {event}\n\n" for event in events)
                    self.answer(200, "text/event-stream", text.encode())
                else:
                    self.answer_json(200, completion(reply, body))
                models.note_reply(parts[0], parts[1])

        return Handler


def usage(reply: Reply, body: dict) -> dict:
    """Returns token counts that depend on texts alone: a token for every four characters."""
    asked = sum(len(json.dumps(message)) for message in body["messages"]) // 4
    answered = len(reply.text) // 4 + 1
    return {"prompt_tokens": asked, "completion_tokens": answered, "total_tokens": asked + answered}


def completion(reply: Reply, body: dict) -> dict:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": reply.text},
        "finish_reason": "length" if reply.is_cut else "stop",
    }
    common = {"id": "scripted", "object": "chat.completion", "created": 0, "model": body["model"]}
    return {**common, "choices": [choice], "usage": usage(reply, body)}


def stream(reply: Reply, body: dict) -> list[str]:
    common = {"id": "scripted", "object": "chat.completion.chunk", "created": 0, "model": body["model"]}
    delta = {"index": 0, "delta": {"role": "assistant", "content": reply.text}, "finish_reason": None}
    end = {"index": 0, "delta": {}, "finish_reason": "length" if reply.is_cut else "stop"}
    chunks = [{"choices": [delta]}, {"choices": [end]}, {"choices": [], "usage": usage(reply, body)}]
    return [json.dumps({**common, **chunk}) for chunk in chunks]
