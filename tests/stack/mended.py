"""Starts MiniStack with two fixes.

MiniStack's Runtime API decodes every response as text. Without the first fix, it drops the connection of a streamed archive,
which ends the function. Its event source mappings pass at most ten messages to a function; with the second fix, batches have
the mapping's size.
"""

import sys

from ministack import app
from ministack.core import lambda_runtime
from ministack.services import sqs

handlers = lambda_runtime.ProvidedWorker._build_handler_class


def handlers_for_streams(worker, generation, pending):
    class Handler(handlers(worker, generation, pending)):
        def do_POST(self) -> None:
            is_stream = self.headers.get("lambda-runtime-function-response-mode") == "streaming"
            result = lambda_runtime._INVOCATION_RESULT_RE.search(self.path)
            if not (is_stream and result and result.group(2) == "response"):
                super().do_POST()
                return
            taken = worker._record_result(generation, result.group(1), "response", self._read_body())
            self._respond(202 if taken else 400)

    return Handler


receive_ten = sqs._receive_messages_for_esm


def receive_batch(queue_url: str, max_number: int) -> list[dict]:
    messages: list[dict] = []
    while len(messages) < max_number:
        more = receive_ten(queue_url, max_number - len(messages))
        if not more:
            break
        messages += more
    return messages


lambda_runtime.ProvidedWorker._build_handler_class = handlers_for_streams
sqs._receive_messages_for_esm = receive_batch

if __name__ == "__main__":
    sys.exit(app.main())
