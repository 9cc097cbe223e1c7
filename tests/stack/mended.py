"""Starts MiniStack with a fix for streamed binary responses.

MiniStack's Runtime API decodes every response as text. Without the fix, it drops the connection of a streamed archive,
which ends the function.
"""

import sys

from ministack import app
from ministack.core import lambda_runtime

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


lambda_runtime.ProvidedWorker._build_handler_class = handlers_for_streams

if __name__ == "__main__":
    sys.exit(app.main())
