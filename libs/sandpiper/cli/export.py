"""Downloads a policy version as a folder that `transformers` loads.

Invariants: the folder appears whole and verified, or not at all; a file name from the server never leaves it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sandpiper.cli.errors import BadInput, Damaged
from sandpiper.cli.transport import Transport

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
ORIGIN = "sandpiper.json"
"""File beside the weights that says where they come from."""
Progress = Callable[[str, int, int], None]
"""Called with file name, bytes so far, bytes in all."""


def export_policy(
    transport: Transport, manifest: dict[str, Any], out: Path, progress: Progress | None = None
) -> Path:
    """Fetch every file of `manifest` into `out`, which must not exist or be empty. Returns its path."""
    out = out.expanduser().absolute()
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BadInput(f"{out} exists; choose another folder or remove it")
    out.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    try:
        for name, file in manifest["files"].items():
            if not NAME.fullmatch(name) or name == ORIGIN:
                raise Damaged(f"the manifest names a file {name!r}, which is not a plain name")
            _fetch(transport, file, partial / name, progress)
        (partial / ORIGIN).write_text(json.dumps(_origin(manifest), indent=1) + "\n")
        partial.chmod(0o755)
        if out.exists():
            out.rmdir()
        os.replace(partial, out)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return out


def _fetch(transport: Transport, file: dict[str, Any], path: Path, progress: Progress | None) -> None:
    digest, size = hashlib.sha256(), 0
    with transport.stream(file["href"]) as response, path.open("wb") as out:
        for chunk in response.iter_bytes(1 << 20):
            out.write(chunk)
            digest.update(chunk)
            size += len(chunk)
            if progress is not None:
                progress(path.name, size, file["bytes"])
        out.flush()
        os.fsync(out.fileno())
    if size != file["bytes"] or digest.hexdigest() != file["sha256"]:
        raise Damaged(f"{path.name}: the {size} bytes that came do not have sha256 {file['sha256']}")


def _origin(manifest: dict[str, Any]) -> dict[str, Any]:
    kept = ("run_id", "version", "step", "base", "dtype", "weights_sha256", "created_at")
    return {name: manifest[name] for name in kept}
