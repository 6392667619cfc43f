"""The read-only system of a sandbox: interpreters, a minimal /etc, the supervisor and the runners."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from services.sandbox_executor.backend.bubblewrap.settings import BubblewrapSettings
from services.sandbox_executor.backend.protocol import CreateFailed

SUPERVISOR = Path(__file__).parents[2] / "supervisor"
PYTHONS = ("/usr/bin/python3", "/usr/local/bin/python3")
NODES = ("/usr/bin/node", "/usr/local/bin/node")
ETC = {
    "passwd": "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n"
    "sandbox:x:1000:1000:sandbox:/workspace:/bin/sh\n"
    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    "group": "root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n",
    "hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "hostname": "sandbox\n",
}
HOST_ETC = ("/etc/ld.so.cache", "/etc/alternatives")
"""Taken from the host, read-only: without them libraries and Debian's `awk` or `node` are not found."""


@dataclass(frozen=True)
class System:
    """Where the parts of the sandbox's system lie on the host."""

    bwrap: str
    python: str
    """Path of the interpreter; the same inside and outside."""
    lib: Path
    """Holds `supervisor/`, `runners/` and `etc/`; readable by every uid."""
    hidden: tuple[Path, ...]
    languages: tuple[str, ...]


def prepare(settings: BubblewrapSettings, runners: Path, folder: Path) -> System:
    """Copy what sandboxes need to `folder` (blocking) and say where it is. Raises CreateFailed with what is
    missing.
    """
    bwrap = shutil.which(settings.bwrap)
    if bwrap is None:
        raise CreateFailed(
            "no_bubblewrap", f"{settings.bwrap!r} was not found; install the package bubblewrap"
        )
    python = find_python(settings)
    shutil.copytree(SUPERVISOR, folder / "supervisor", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(runners, folder / "runners", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "etc").mkdir()
    for name, text in ETC.items():
        (folder / "etc" / name).write_text(text)
    compiled = [str(folder / name) for name in ("supervisor", "runners")]
    subprocess.run([python, "-I", "-m", "compileall", "-q", *compiled], check=True, timeout=60)
    _open_to_all(folder)
    return System(bwrap, python, folder, hidden_folders(settings, python), languages())


def find_python(settings: BubblewrapSettings) -> str:
    """The interpreter of the supervisor."""
    for path in (settings.python,) if settings.python else PYTHONS:
        if os.access(path, os.X_OK) and os.path.realpath(path).startswith("/usr/"):
            return path
    raise CreateFailed("no_python", f"no interpreter below /usr ({settings.python or ', '.join(PYTHONS)})")


def languages() -> tuple[str, ...]:
    """Languages whose interpreter a sandbox sees."""
    found = [("python", PYTHONS), ("javascript", NODES)]
    return tuple(name for name, paths in found if any(os.access(path, os.X_OK) for path in paths))


def hidden_folders(settings: BubblewrapSettings, python: str) -> tuple[Path, ...]:
    """Of the folders to hide, those that exist and hold no interpreter."""
    needed = [os.path.realpath(path) for path in (python, *PYTHONS, *NODES) if os.access(path, os.X_OK)]
    return tuple(
        folder
        for folder in settings.hidden
        if folder.is_dir() and not any(path.startswith(f"{folder}/") for path in needed)
    )


def reachable_folder(wanted: Path) -> Path:
    """`wanted`, or a temporary folder when we are root and other uids cannot get to `wanted`."""
    wanted = wanted.absolute()
    if os.geteuid() != 0 or _reachable_by_all(wanted):
        return wanted
    candidates = [Path(tempfile.gettempdir()), Path("/var/tmp"), Path("/tmp")]
    folder = next(path for path in candidates if _reachable_by_all(path)) / "sandpiper-executors"
    folder.mkdir(mode=0o755, exist_ok=True)
    info = folder.lstat()
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid() or info.st_mode & 0o022:
        raise CreateFailed(
            "unsafe_folder", f"{folder} is not ours alone; set data_dir to a folder that all may enter"
        )
    return folder


def _reachable_by_all(folder: Path) -> bool:
    return all(path.stat().st_mode & 0o001 for path in (folder, *folder.parents) if path.exists())


def _open_to_all(folder: Path) -> None:
    for path, folders, files in os.walk(folder):
        for name in [*folders, "."]:
            os.chmod(os.path.join(path, name), 0o755)
        for name in files:
            os.chmod(os.path.join(path, name), 0o644)
