from pathlib import Path


def test_notes():
    found = Path("/app/notes.txt").read_text().splitlines()
    assert found == ["call the bank", "buy bread", "water the plants", "pay the rent twice"]
