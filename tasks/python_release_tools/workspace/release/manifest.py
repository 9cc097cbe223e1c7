"""The manifest of a release."""

import hashlib
import json
from pathlib import Path


def body(config, names):
    """Returns the manifest's content."""
    files = []
    for name in names:
        content = Path(name).read_bytes()
        files.append({"path": name, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()})
    return {"name": config.name, "version": config.version, "files": files}


def write(folder, content):
    """Writes `manifest.json` into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    (folder / "manifest.json").write_text(text, encoding="utf-8")
