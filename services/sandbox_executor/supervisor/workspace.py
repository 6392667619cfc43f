"""Files of the sandbox, whatever a program left there.

Invariants: nothing runs while these functions work; no path leaves the root (each component is opened without
following symlinks); a file or link that stands where a folder must be is replaced; depth never becomes
recursion.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .wire import Body

MAX_PATH = 3800
"""Longest path in bytes; longer ones cannot be opened by name."""
FULL_BELOW = 16 << 10
"""A file system with fewer bytes left counts as full."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Refused(Exception):
    """A request that must not be carried out. `code` is one machine-readable word."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code


def split(path: bytes) -> list[bytes]:
    """Components of a relative path. Refuses what is absolute, climbs, is empty, too long or holds a NUL."""
    parts = path.split(b"/")
    if not path or len(path) > MAX_PATH or b"\0" in path or any(p in (b"", b".", b"..") for p in parts):
        raise Refused("bad_path", f"{path[:200]!r} is not a normalised path inside the workspace")
    return parts


def open_folder(root: int, parts: list[bytes]) -> int:
    """A descriptor of the folder, created with its parents; the caller closes it."""
    here = os.dup(root)
    for part in parts:
        try:
            below = _enter(here, part)
        finally:
            os.close(here)
        here = below
    return here


def _enter(folder: int, name: bytes) -> int:
    try:
        info = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISDIR(info.st_mode):
            os.unlink(name, dir_fd=folder)
            os.mkdir(name, 0o755, dir_fd=folder)
        elif info.st_mode & 0o700 != 0o700:
            os.chmod(name, stat.S_IMODE(info.st_mode) | 0o700, dir_fd=folder)
    except FileNotFoundError:
        os.mkdir(name, 0o755, dir_fd=folder)
    return os.open(name, _FOLDER, dir_fd=folder)


def make_room(folder: int, name: bytes) -> None:
    """Remove whatever stands at `name`, a whole tree if need be."""
    try:
        info = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(info.st_mode):
        os.unlink(name, dir_fd=folder)
        return
    below = _enter(folder, name)
    try:
        empty(below)
    finally:
        os.close(below)
    os.rmdir(name, dir_fd=folder)


def write_file(root: int, path: bytes, mode: int, size: int, body: Body) -> None:
    """Write `size` bytes of `body` at `path`; what stood there is replaced, never followed."""
    *parents, name = split(path)
    folder = open_folder(root, parents)
    try:
        make_room(folder, name)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        target = os.open(name, flags, 0o600, dir_fd=folder)
        try:
            _fill(target, size, body)
            os.fchmod(target, (mode or 0o644) & 0o777)
        finally:
            os.close(target)
    finally:
        os.close(folder)


def _fill(target: int, size: int, body: Body) -> None:
    while size > 0:
        chunk = body.read(min(size, 256 << 10))
        size -= len(chunk)
        view = memoryview(chunk)
        while view:
            view = view[os.write(target, view) :]


def empty(root: int) -> None:
    """Remove all below `root`. Deep trees are flattened by renaming, so depth costs neither stack nor
    descriptors.
    """
    serial = 0
    while True:
        names = [os.fsencode(name) for name in os.listdir(root)]
        if not names:
            return
        for name in names:
            if not stat.S_ISDIR(os.stat(name, dir_fd=root, follow_symlinks=False).st_mode):
                os.unlink(name, dir_fd=root)
                continue
            serial = _flatten(root, name, serial)


def _flatten(root: int, name: bytes, serial: int) -> int:
    folder = _enter(root, name)
    try:
        for child in [os.fsencode(entry) for entry in os.listdir(folder)]:
            if stat.S_ISDIR(os.stat(child, dir_fd=folder, follow_symlinks=False).st_mode):
                serial = _move_up(root, folder, child, serial)
            else:
                os.unlink(child, dir_fd=folder)
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=root)
    return serial


def _move_up(root: int, folder: int, child: bytes, serial: int) -> int:
    os.close(_enter(folder, child))  # a folder without write permission cannot be renamed
    while True:
        serial += 1
        target = b".sandpiper-%d" % serial
        try:
            os.stat(target, dir_fd=root, follow_symlinks=False)
        except FileNotFoundError:
            os.rename(child, target, src_dir_fd=folder, dst_dir_fd=root)
            return serial


def is_full(path: str) -> bool:
    """Whether the file system at `path` has (nearly) no byte left."""
    info = os.statvfs(path)
    return info.f_bavail * info.f_frsize < FULL_BELOW


def used(path: str) -> tuple[int, int]:
    """Bytes and inodes in use on the file system at `path`."""
    info = os.statvfs(path)
    return (info.f_blocks - info.f_bfree) * info.f_frsize, info.f_files - info.f_ffree
