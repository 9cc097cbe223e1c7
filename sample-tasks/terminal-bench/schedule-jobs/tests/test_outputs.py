import subprocess


def schedule(text):
    done = subprocess.run(["python3", "/app/schedule.py"], input=text, capture_output=True, text=True, timeout=10)
    return done.returncode, done.stdout.split()


def test_order():
    assert schedule("test: build\nbuild: fetch\nfetch:\n") == (0, ["fetch", "build", "test"])


def test_alphabetical():
    assert schedule("d: b\nc:\nb:\na: c\n") == (0, ["b", "c", "a", "d"])


def test_cycle():
    assert schedule("a: b\nb: a\nc:\n") == (1, ["cycle"])
