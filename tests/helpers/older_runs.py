"""Run folders as versions without digests wrote them."""

import json
import struct


def replace_about(path, change):
    """Replace the metadata of a file of tensors by what `change` returns for them, a text or an object of JSON."""
    content = path.read_bytes()
    end = 8 + struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:end])
    about = change(json.loads(header["__metadata__"]["about"]))
    header["__metadata__"]["about"] = about if isinstance(about, str) else json.dumps(about)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + content[end:])


def without_digests(about):
    return {name: value for name, value in about.items() if name not in ("digest", "identity", "versions", "files")}


def remove_digests(run):
    """Remove all digests from a run folder, and the identity of the run."""
    for path in run.glob("*.safetensors"):
        replace_about(path, without_digests)
    config = json.loads((run / "config.json").read_text())
    config.pop("data_digest", None)
    (run / "config.json").write_text(json.dumps(config))
