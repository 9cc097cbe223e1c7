from pathlib import Path


def lines():
    return Path("/app/totals.csv").read_text().split()


def test_header():
    assert lines()[0] == "customer,total"


def test_totals():
    assert lines()[1:] == ["Ada,31.50", "Grace,7.30"]
