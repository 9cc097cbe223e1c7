"""JSON values. Numbers are `fractions.Fraction` whose denominators have no prime factors but 2 and 5."""

import decimal
import fractions
import json
import re

NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")


class Missing:
    """The value of a field that doesn't exist."""

    def __repr__(self):
        return "MISSING"


MISSING = Missing()


def number(text):
    """Returns the value of a JSON number."""
    return fractions.Fraction(decimal.Decimal(text))


def from_json(text):
    """Returns the value in a JSON text. Raises `ValueError` if it is invalid."""
    return json.loads(text, parse_float=number, parse_int=number, parse_constant=refuse)


def refuse(name):
    raise ValueError(f"{name} is no JSON")


def number_text(value):
    """Returns a number with all its digits, without an exponent."""
    digits = 0
    while (value * 10**digits).denominator != 1:
        digits += 1
    text = str(abs((value * 10**digits).numerator)).rjust(digits + 1, "0")
    sign = "-" if value < 0 else ""
    return sign + (f"{text[:-digits]}.{text[-digits:]}" if digits else text)


def to_json(value):
    """Returns a value as JSON text. Missing fields are left out."""
    if isinstance(value, fractions.Fraction):
        return number_text(value)
    if isinstance(value, list):
        return "[" + ", ".join(map(to_json, value)) + "]"
    if isinstance(value, dict):
        fields = ((name, field) for name, field in value.items() if field is not MISSING)
        return "{" + ", ".join(f"{to_json(name)}: {to_json(field)}" for name, field in fields) + "}"
    return json.dumps(value, ensure_ascii=False)
