#!/bin/bash
cd /app && python3 - <<'PYTHON'
import zlib
notes = {}
for line in open("notes.log"):
    number, digits, text = line.rstrip("\n").split(" ", 2)
    if zlib.crc32(text.encode()) == int(digits, 16):
        notes[int(number)] = text
with open("notes.txt", "w") as file:
    file.writelines(f"{notes[number]}\n" for number in sorted(notes))
PYTHON
