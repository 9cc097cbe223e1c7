#!/bin/bash
cat > /app/schedule.py <<'PYTHON'
import heapq
import sys

needs = {}
for line in sys.stdin:
    if line.strip():
        name, _, rest = line.partition(":")
        needs.setdefault(name.strip(), set()).update(rest.split())
        for other in rest.split():
            needs.setdefault(other, set())
ready = [name for name in needs if not needs[name]]
heapq.heapify(ready)
order = []
while ready:
    done = heapq.heappop(ready)
    order.append(done)
    for name, open_needs in needs.items():
        if done in open_needs:
            open_needs.remove(done)
            if not open_needs:
                heapq.heappush(ready, name)
if len(order) < len(needs):
    print("cycle")
    sys.exit(1)
print("\n".join(order))
PYTHON
