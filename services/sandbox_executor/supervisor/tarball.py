"""Workspace <-> tar, deterministic: sorted names, no times, no owners, GNU long names.

Written here and not with `tarfile`, whose import alone costs more than a sandbox's start. Only the supervisor
unpacks: an archive made by a program is never unpacked outside a sandbox.
"""

from __future__ import annotations

import os
import stat

from .workspace import MAX_PATH, Refused, make_room, open_folder, split, write_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .wire import Body

BLOCK = 512
END = bytes(2 * BLOCK)
CHUNK = 256 << 10
_MAX_META = 1 << 20


class Entry:
    """One member that will be written: `kind` is the tar type flag (b"0", b"5" or b"2")."""

    __slots__ = ("kind", "link", "mode", "name", "size")

    def __init__(self, kind: bytes, name: bytes, mode: int, size: int = 0, link: bytes = b"") -> None:
        self.kind, self.name, self.mode, self.size, self.link = kind, name, mode, size, link


def padded(size: int) -> int:
    """`size` rounded up to whole blocks."""
    return -(-size // BLOCK) * BLOCK


def plan(root: bytes, max_entries: int) -> list[Entry]:
    """All files, folders and symlinks below `root`, sorted. Sockets, pipes and devices are left out."""
    entries: list[Entry] = []
    todo = [b""]
    while todo:
        prefix = todo.pop()
        for entry in _below(root, prefix):
            entries.append(entry)
            if len(entries) > max_entries:
                raise Refused("too_big", f"more than {max_entries} files")
            if entry.kind == b"5":
                todo.append(entry.name)
    entries.sort(key=lambda entry: entry.name)
    return entries


def _below(root: bytes, prefix: bytes) -> list[Entry]:
    with os.scandir(root + b"/" + prefix if prefix else root) as items:
        found = [(item.name, item.stat(follow_symlinks=False)) for item in items]
    names = [(prefix + b"/" + name if prefix else name, info) for name, info in found]
    if any(len(name) > MAX_PATH for name, _ in names):
        raise Refused("too_big", "a path is too long to be kept")
    return [entry for name, info in names if (entry := _entry(root, name, info)) is not None]


def _entry(root: bytes, name: bytes, info: os.stat_result) -> Entry | None:
    mode = info.st_mode & 0o777
    if stat.S_ISREG(info.st_mode):
        return Entry(b"0", name, mode, info.st_size)
    if stat.S_ISLNK(info.st_mode):
        return Entry(b"2", name, 0o777, link=os.readlink(root + b"/" + name))
    if stat.S_ISDIR(info.st_mode):
        if info.st_mode & 0o500 != 0o500:
            os.chmod(root + b"/" + name, mode | 0o700)
        return Entry(b"5", name, mode)
    return None


def total(entries: list[Entry]) -> int:
    """Bytes of the archive of `entries`."""
    return sum(len(head(entry)) + padded(entry.size) for entry in entries) + len(END)


def head(entry: Entry) -> bytes:
    """All header blocks of one member."""
    name = entry.name + b"/" if entry.kind == b"5" else entry.name
    blocks = b""
    for long, kind in ((entry.link, b"K"), (name, b"L")):
        if len(long) > 100:
            data = long + b"\0"
            blocks += _header(b"././@LongLink", 0o644, len(data), kind, b"")
            blocks += data.ljust(padded(len(data)), b"\0")
    return blocks + _header(name[:100], entry.mode, entry.size, entry.kind, entry.link[:100])


def _header(name: bytes, mode: int, size: int, kind: bytes, link: bytes) -> bytes:
    block = b"%s%07o\0%07o\0%07o\0%011o\0%011o\0" % (name.ljust(100, b"\0"), mode, 0, 0, size, 0)
    block += b" " * 8 + kind + link.ljust(100, b"\0") + b"ustar  \0"
    block = block.ljust(BLOCK, b"\0")
    return block[:148] + b"%06o\0 " % sum(block) + block[156:]


def stream(root: bytes, entries: list[Entry]) -> Iterator[bytes]:
    """The archive, in chunks."""
    for entry in entries:
        yield head(entry)
        if entry.kind == b"0":
            yield from _content(root + b"/" + entry.name, entry)
    yield END


def _content(path: bytes, entry: Entry) -> Iterator[bytes]:
    source = _open_any(path, entry.mode)
    left = entry.size
    try:
        while left > 0:
            chunk = os.read(source, min(left, CHUNK)) or bytes(min(left, CHUNK))
            left -= len(chunk)
            yield chunk
    finally:
        os.close(source)
    yield bytes(padded(entry.size) - entry.size)


def _open_any(path: bytes, mode: int) -> int:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(path, flags)
    except PermissionError:
        os.chmod(path, 0o600)
        source = os.open(path, flags)
        os.fchmod(source, mode)
        return source


class Member:
    """One header that was read."""

    __slots__ = ("kind", "link", "mode", "name", "size")

    def __init__(self, block: bytes) -> None:
        if sum(block[:148]) + sum(block[156:]) + 8 * 32 != _octal(block[148:156]):
            raise Refused("bad_archive", "a header checksum is wrong")
        self.name = block[:100].split(b"\0")[0]
        self.mode = _octal(block[100:108]) & 0o777
        self.size = _octal(block[124:136])
        self.kind = block[156:157]
        self.link = block[157:257].split(b"\0")[0]
        if block[257:263] == b"ustar\0" and block[345]:
            self.name = block[345:500].split(b"\0")[0] + b"/" + self.name


def _octal(field: bytes) -> int:
    if field[0] & 0x80:
        return int.from_bytes(field, "big") & ((1 << (8 * len(field) - 1)) - 1)
    try:
        return int(field.split(b"\0")[0].strip() or b"0", 8)
    except ValueError:
        raise Refused("bad_archive", "a header number is malformed") from None


def unpack(root: int, body: Body, keep: list[bytes]) -> int:
    """Unpack the archive in `body`; with `keep`, only those paths and what is below. Returns the count."""
    count = 0
    links: list[tuple[bytes, int]] = []
    for member in _members(body):
        name = _clean(member.name)
        if name is None or not _kept(name, keep):
            body.skip(padded(member.size))
            continue
        count += 1
        _place(root, name, member, body)
        if member.kind == b"5":
            links.append((name, member.mode))
    for name, mode in reversed(links):  # last, so that a folder without write permission can be filled
        *parents, last = split(name)
        folder = open_folder(root, parents)
        try:
            os.chmod(last, mode, dir_fd=folder)
        finally:
            os.close(folder)
    return count


def _members(body: Body) -> Iterator[Member]:
    long: dict[bytes, bytes] = {}
    while body.left >= BLOCK:
        block = body.read(BLOCK)
        if not any(block):
            break
        member = Member(block)
        if padded(member.size) > body.left:
            raise Refused("bad_archive", "a member is longer than the archive")
        if member.kind in (b"L", b"K", b"x", b"g"):
            _meta(member, body, long)
            continue
        member.name = long.pop(b"L", member.name)
        member.link = long.pop(b"K", member.link)
        yield member
        long.clear()


def _meta(member: Member, body: Body, long: dict[bytes, bytes]) -> None:
    if member.size > _MAX_META:
        raise Refused("bad_archive", "a header extension is too large")
    data = body.read(padded(member.size))[: member.size]
    if member.kind in (b"L", b"K"):
        long[member.kind] = data.split(b"\0")[0]
    elif member.kind == b"x":
        while data:  # pax records: b"<length> <key>=<value>\n"
            digits, _, _ = data.partition(b" ")
            if not digits.isdigit() or not 0 < int(digits) <= len(data):
                raise Refused("bad_archive", "a pax record is malformed")
            key, _, value = data[len(digits) + 1 : int(digits) - 1].partition(b"=")
            if key in (b"path", b"linkpath"):
                long[b"L" if key == b"path" else b"K"] = value
            elif key == b"size" or key.startswith(b"GNU.sparse"):
                raise Refused("bad_archive", f"pax key {key[:40]!r} is not supported")
            data = data[int(digits) :]


def _clean(name: bytes) -> bytes | None:
    while name.startswith(b"./"):
        name = name[2:].lstrip(b"/")
    name = name.rstrip(b"/") if name != b"/" else name
    return None if name in (b"", b".") else name


def _kept(name: bytes, keep: list[bytes]) -> bool:
    return not keep or any(name == path or name.startswith(path + b"/") for path in keep)


def _place(root: int, name: bytes, member: Member, body: Body) -> None:
    *parents, last = split(name)
    if member.kind in (b"0", b"\0", b"7"):
        write_file(root, name, member.mode, member.size, body)
        body.skip(padded(member.size) - member.size)
    elif member.kind == b"5":
        os.close(open_folder(root, [*parents, last]))
    elif member.kind in (b"1", b"2"):
        _link(root, name, member)
    else:
        raise Refused("bad_archive", f"{name[:200]!r} is a device, a pipe or of an unknown kind")


def _link(root: int, name: bytes, member: Member) -> None:
    *parents, last = split(name)
    folder = open_folder(root, parents)
    try:
        make_room(folder, last)
        if member.kind == b"2":
            os.symlink(member.link, last, dir_fd=folder)
            return
        *target_parents, target = split(_clean(member.link) or b"")
        source = open_folder(root, target_parents)
        try:
            os.link(target, last, src_dir_fd=source, dst_dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            raise Refused("bad_archive", f"{name[:200]!r} links to nothing") from None
        finally:
            os.close(source)
    finally:
        os.close(folder)
