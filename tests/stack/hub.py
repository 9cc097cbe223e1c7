"""Serves a hub with one gated dataset of a few items, for runs whose exports are private."""

import http.server
import json
import threading

COMMIT = "5c3e1f0a9b7d42680a1b2c3d4e5f60718293a4b5"
DATASET = "Idavidrein/gpqa"
FILE = "gpqa_diamond.jsonl"
# Word that occurs only in the questions.
WORD = "xylograph"


def rows(count: int) -> bytes:
    items = [
        {
            "Question": f"Which {WORD} shows {number} marmosets beside the river?",
            "Correct Answer": f"the one numbered {number}",
            "Incorrect Answer 1": "one marmoset", "Incorrect Answer 2": "two marmosets", "Incorrect Answer 3": "none",
            "High-level domain": "Biology",
        }
        for number in range(count)
    ]
    return "".join(json.dumps(item) + "\n" for item in items).encode()


class Hub:
    def __init__(self, token: str):
        content = rows(4)
        revision = {
            "id": DATASET, "sha": COMMIT, "siblings": [{"rfilename": FILE}],
            "cardData": {"configs": [{"config_name": "gpqa_diamond", "data_files": FILE}]},
        }
        answers = {
            f"/api/datasets/{DATASET}/revision/main": json.dumps(revision).encode(),
            f"/api/datasets/{DATASET}/revision/{COMMIT}": json.dumps(revision).encode(),
            f"/datasets/{DATASET}/resolve/{COMMIT}/{FILE}": content,
        }

        class Asked(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                answer = answers.get(self.path.partition("?")[0])
                # Only the token's account has accepted the terms.
                allowed = self.headers.get("authorization") == f"Bearer {token}"
                if answer is None:
                    status, code, answer = 404, "RepoNotFound", b""
                elif not allowed:
                    status, code, answer = 401, "GatedRepo", b""
                else:
                    status, code = 200, None
                self.send_response(status)
                if code:
                    self.send_header("x-error-code", code)
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Asked)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()
