"""Removes scripts from HTML. Usage: filter.py FILE"""

import re
import sys

with open(sys.argv[1]) as file:
    html = file.read()
html = re.sub(r"(?is)<script.*?</script\s*>", "", html)
html = re.sub(r"(?is)\son\w+\s*=\s*(\"[^\"]*\"|'[^']*'|[^\s>]+)", "", html)
print(html)
