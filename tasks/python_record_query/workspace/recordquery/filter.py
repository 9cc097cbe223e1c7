"""The command `filter`."""

from .errors import UsageError
from .values import MISSING, to_json


def field(record, path):
    """Returns the value at a path of names."""
    value = record
    for name in path.split("."):
        if not isinstance(value, dict) or name not in value:
            return MISSING
        value = value[name]
    return value


class Condition:
    def __init__(self, text):
        self.path, sign, self.text = text.partition("=")
        if not sign or not self.path:
            raise UsageError(f"`{text}` is no condition `PATH=TEXT`")

    def matches(self, record):
        value = field(record, self.path)
        if value is MISSING:
            return False
        return value == self.text or to_json(value) == self.text


def filtered(records, conditions, paths):
    """Yields the records that match all conditions, with the selected fields if there are paths."""
    for record in records:
        if all(condition.matches(record) for condition in conditions):
            yield {path: field(record, path) for path in paths} if paths else record
