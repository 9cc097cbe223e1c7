#!/usr/bin/env python3
"""Writes the starts of the API's paths in frontend-static/routes.json into the CloudFront Function of template.yaml.

With --check, only reports whether they differ.
"""

import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "frontend-static" / "routes.json"
TEMPLATE = ROOT / "template.yaml"
# The table in the function's code, with the indentation of the first line.
IN_TEMPLATE = re.compile(r"^( *)const api = \[\n.*?^ *\];$", re.MULTILINE | re.DOTALL)


def with_paths(template, paths):
    """Returns the template with these starts of paths in its function."""

    def table(found):
        lines = f"const api = {json.dumps(paths, indent=2)};".split("\n")
        return "\n".join(found[1] + line for line in lines)

    written, count = IN_TEMPLATE.subn(table, template)
    if count != 1:
        sys.exit(f"template.yaml: {count} functions have a table of paths, not 1")
    return written


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit("usage: page_routes.py [--check]")
    template = TEMPLATE.read_text()
    written = with_paths(template, json.loads(TABLE.read_text())["api"])
    if sys.argv[1:] and written != template:
        sys.exit("template.yaml: its paths of the API are not those of frontend-static/routes.json; run infra/page_routes.py")
    if written != template:
        TEMPLATE.write_text(written)


if __name__ == "__main__":
    main()
