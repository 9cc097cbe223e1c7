#!/usr/bin/env python3
"""Writes a data directory as the given `bench` has it: make.py BENCH OUT.tar.gz

`earlier.rs` opens, lists, resumes and verifies what the version before wrote. In it are
  - a run that is over, judged by a model, and its signed archive beside the directory;
  - a run whose process was killed with answers stored, an answer on its way, and samples in the queue;
  - a run that was killed while its judge was asked;
  - a run of code that was killed while its programs ran;
  - a schedule.
The model answers on PORT, where the tests listen again.
"""
import http.server, json, os, signal, subprocess, sys, tarfile, tempfile, threading, time

PORT = 28471
bench, out = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
place = tempfile.mkdtemp()
data = os.path.join(place, "data")
hang_on = None
hung = threading.Event()


class Model(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        asked = self.rfile.read(int(self.headers["content-length"])).decode()
        if hang_on and hang_on in asked:
            hung.set()
            time.sleep(3600)
        judged = "judge" in json.loads(asked)["model"]
        text = '{"correct": "yes", "extracted_final_answer": "x", "reasoning": "x", "confidence": 90, "strict": true}' if judged else "The answer is (B)."
        events = [
            {"id": "a", "object": "chat.completion.chunk", "created": 1, "model": "m",
             "choices": [{"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": "stop"}]},
            {"id": "a", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [],
             "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}},
        ]
        body = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Model)
threading.Thread(target=server.serve_forever, daemon=True).start()
environment = {"PATH": os.environ["PATH"], "HOME": place, "BENCH_HOME": data, "HF_HUB_OFFLINE": "1"}
url = f"http://127.0.0.1:{PORT}/v1"


def row(name, cot=""):
    return json.dumps({
        "question": f"[item {name}] Which is the second letter?", "options": ["A", "B", "C"], "answer": "B",
        "answer_index": 1, "category": "math", "cot_content": cot, "question_id": name, "src": "own"}) + "\n"


def command(*arguments):
    return subprocess.Popen([bench, *arguments], env=environment, cwd=place)


def done(*arguments):
    assert command(*arguments).wait() == 0, arguments


def killed(until, *arguments):
    child = command(*arguments)
    until(child)
    child.send_signal(signal.SIGKILL)
    child.wait()


with open(os.path.join(place, "items.jsonl"), "w") as file:
    file.write(row("shot", "A: Let's think step by step. The answer is (B)."))
    file.writelines(row(f"b{n}") for n in range(4))
    file.write(row("hangs"))
    file.writelines(row(f"c{n}") for n in range(3))

model = ("--model", "openai-compatible/m", "--base-url", url, "--concurrency", "1")
judge = ("--judge-model", "openai-compatible/judge", "--judge-base-url", url)


def asked(_):
    assert hung.wait(120), "the model was not asked"
    hung.clear()


def at_work(child):
    folder = os.path.join(data, "sandboxes")
    while child.poll() is None and not any(os.scandir(folder) if os.path.isdir(folder) else ()):
        time.sleep(0.01)
    time.sleep(0.5)


done("run", "--demo", "-b", "hle", "--subset-count", "3", *model, *judge, "--out", place)
hang_on = "[item hangs]"
killed(asked, "run", "-b", "mmlu_pro", "--dataset", "mmlu_pro=items.jsonl", *model)
hang_on = '"judge"'
killed(asked, "run", "--demo", "-b", "hle", "--subset-count", "3", *model, *judge)
hang_on = None
killed(at_work, "run", "--demo", "-b", "livecodebench", "--subset-count", "4", "--samples", "1", "--model", "oracle", "--concurrency", "2")
done("schedules", "add", "--name", "nightly", "--demo", "--cron", "30 3 * * *", "--time-zone", "Europe/Berlin", "--model", "oracle", "-b", "mmlu_pro")

with tarfile.open(out, "w:gz") as archive:
    names = ["data"] + [name for name in os.listdir(place) if name.endswith(".zip")]
    for name in names:
        archive.add(os.path.join(place, name), arcname=name.replace(name, "archive.zip") if name.endswith(".zip") else name)
print(place)
