"""Reads `release.json`."""

import json
from dataclasses import dataclass

from .errors import ReleaseError

TOOLS = ("digest", "sign", "stamp", "registry")


@dataclass(frozen=True)
class Config:
    name: str
    version: str
    include: tuple
    exclude: tuple
    tools: dict


def texts(value):
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def load(path):
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except (OSError, ValueError) as error:
        raise ReleaseError(f"{path} can't be read: {error}") from None
    for name in ("name", "version"):
        if not isinstance(data.get(name), str):
            raise ReleaseError(f"`{name}` must be a text")
    for name in ("include", "exclude"):
        if not texts(data.get(name, [])):
            raise ReleaseError(f"`{name}` must be a list of patterns")
    tools = data.get("tools", {})
    for name in TOOLS:
        if not texts(tools.get(name)) or not tools[name]:
            raise ReleaseError(f"`tools` has no command for `{name}`")
    return Config(data["name"], data["version"], tuple(data.get("include", [])), tuple(data.get("exclude", [])), tools)
