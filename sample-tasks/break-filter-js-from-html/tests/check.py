import hashlib
import html.parser
import subprocess
import sys

FILTER_SHA256 = "3bb0bc56afdab252f77fb1ff985969b591ea2d7d2a243d42d5f5cc948d8c1dc1"


class Scripts(html.parser.HTMLParser):
    """Finds scripts that a browser would run."""

    def __init__(self):
        super().__init__()
        self.inside = False
        self.calls = False

    def handle_starttag(self, tag, attributes):
        self.inside = tag == "script"
        self.calls |= any(name.startswith("on") and "alert" in (value or "") for name, value in attributes)

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, text):
        self.calls |= self.inside and "alert" in text


with open("/app/filter.py", "rb") as file:
    if hashlib.sha256(file.read()).hexdigest() != FILTER_SHA256:
        sys.exit("1 failed: the filter was changed")
run = subprocess.run(["python3", "/app/filter.py", "/app/out.html"], capture_output=True, text=True, timeout=30)
if run.returncode != 0:
    sys.exit(f"1 failed: {run.stderr}")
found = Scripts()
found.feed(run.stdout)
if not found.calls:
    sys.exit(f"1 failed: no script is left of\n{run.stdout}")
print("1 passed")
