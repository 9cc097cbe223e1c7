"""An OpenAI-compatible server whose models follow scripts. A model is named NAME--agent or NAME--user.

Which reply is due follows from the request alone: from the number of the model's own messages in it. The agent's first one is the
greeting. So repeated requests get the same reply. Writes each request's model, system text and tools once into a file.
"""

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Models(BaseHTTPRequestHandler):
    conversations, seen, lock = {}, {}, threading.Lock()
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.respond({"object": "list", "data": [{"id": f"{name}--{role}", "object": "model"} for name in self.conversations for role in ("agent", "user")]})

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        name, role = request["model"].rsplit("--", 1)
        own = sum(message["role"] == "assistant" for message in request["messages"]) - (role == "agent")
        script = self.conversations[name][role]
        reply = script[min(own, len(script) - 1)]
        system = [message["content"] for message in request["messages"] if message["role"] == "system"]
        about = {"system": system, **{key: request.get(key) for key in ("tools", "tool_choice", "seed", "temperature", "max_tokens", "stop")}}
        thread = [{key: value for key, value in message.items() if key in ("role", "content", "tool_calls", "tool_call_id", "name")} for message in request["messages"]]
        with self.lock:
            self.seen.setdefault(request["model"], {"about": about, "requests": []})["requests"].append(thread)
        message = {"role": "assistant", "content": reply.get("content")}
        if "calls" in reply:
            message["tool_calls"] = [
                {
                    "id": "call_" + hashlib.sha256(f"{request['model']} {own} {at}".encode()).hexdigest()[:8],
                    "type": "function",
                    "function": {"name": called, "arguments": json.dumps(arguments)},
                }
                for at, (called, arguments) in enumerate(reply["calls"])
            ]
        usage = {"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107}
        finish = "tool_calls" if "calls" in reply else "stop"
        common = {"id": "x", "created": 0, "model": request["model"]}
        if not request.get("stream"):
            return self.respond({**common, "object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": usage})
        for at, one in enumerate(message.get("tool_calls", [])):
            one["index"] = at
        pieces = [
            {**common, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
            {**common, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
            {**common, "object": "chat.completion.chunk", "choices": [], "usage": usage},
        ]
        body = "".join(f"data: {json.dumps(piece)}\n\n" for piece in pieces) + "data: [DONE]\n\n"
        self.respond(body, "text/event-stream")

    def respond(self, content, kind="application/json"):
        body = (content if isinstance(content, str) else json.dumps(content)).encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def serve(conversations):
    """Serves in the background. Returns the address and what the models were asked."""
    handler = type("Handler", (Models,), {"conversations": conversations, "seen": {}, "lock": threading.Lock()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/v1", handler.seen
