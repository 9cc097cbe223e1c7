#!/bin/bash
set -e
# The program of the picture, in Python.
python3 > /app/printed.txt <<'PYTHON'
wheel = [5, 12, 7, 20, 9, 16, 3]
abc = "abcdefghijklmnopqrstuvwxyz"
total = 41
word = ""

for step in range(1, 61):
    i = (total + step) % 7
    j = (total * step) % 7
    wheel[i], wheel[j] = wheel[j], wheel[i]
    if wheel[0] > wheel[6]:
        total = total + step * wheel[i]
    elif total % 3 == 0:
        total = total // 3
    else:
        total = total + wheel[step % 7]
    if step % 5 == 0:
        word = word + abc[total % 26]

print(word)
print(total)
PYTHON
