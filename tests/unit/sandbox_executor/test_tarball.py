"""Snapshots: deterministic, faithful, readable by others, closed to what climbs."""

from __future__ import annotations

import contextlib
import io
import os
import stat
import tarfile
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.sandbox_executor.supervisor import tarball, workspace
from services.sandbox_executor.supervisor.wire import Body
from services.sandbox_executor.supervisor.workspace import Refused

NAMES = st.binary(min_size=1, max_size=120).filter(
    lambda name: b"/" not in name and b"\0" not in name and name not in (b".", b"..")
)
TREES = st.recursive(
    st.binary(max_size=2000) | NAMES.map(lambda target: (target,)),
    lambda inner: st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


def pack(root: Path, max_entries: int = 10_000) -> bytes:
    entries = tarball.plan(os.fsencode(root), max_entries)
    data = b"".join(tarball.stream(os.fsencode(root), entries))
    assert len(data) == tarball.total(entries)
    return data


def unpack(root: Path, data: bytes, keep: list[bytes] | None = None) -> int:
    with tempfile.TemporaryFile() as source:
        source.write(data)
        source.seek(0)
        folder = os.open(root, os.O_RDONLY)
        try:
            return tarball.unpack(folder, Body(source.fileno(), len(data)), keep or [])
        finally:
            os.close(folder)


def build(folder: bytes, tree: object) -> None:
    """A dict is a folder, bytes a file, a tuple a symlink."""
    if isinstance(tree, dict):
        os.makedirs(folder, exist_ok=True)
        for name, below in tree.items():
            build(folder + b"/" + name, below)
    elif isinstance(tree, tuple):
        os.symlink(tree[0], folder)
    elif isinstance(tree, bytes):
        with open(folder, "wb") as target:
            target.write(tree)


def look(folder: bytes) -> object:
    """The inverse of `build`."""
    if os.path.islink(folder):
        return (os.readlink(folder),)
    if os.path.isdir(folder):
        return {name: look(folder + b"/" + name) for name in os.listdir(folder)}
    with open(folder, "rb") as source:
        return source.read()


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(NAMES, TREES, max_size=5))
def test_any_tree_survives_the_round_trip(tree: dict[bytes, object]) -> None:
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        build(os.fsencode(one), tree)
        data = pack(Path(one))
        unpack(Path(other), data)
        assert look(os.fsencode(other)) == tree
        assert pack(Path(other)) == data


def test_the_same_tree_gives_the_same_bytes_whenever_and_however_it_was_made(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for root, names in ((one, ["a", "b", "a-c"]), (other, ["a-c", "b", "a"])):
        root.mkdir()
        for name in names:
            (root / name).mkdir()
            (root / name / "file").write_text(name)
            os.utime(root / name / "file", (len(names), 10**9))
    assert pack(one) == pack(other)


def test_modes_are_kept_and_special_bits_are_not(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for root in (one, other):
        root.mkdir()
    (one / "run").write_text("x")
    (one / "run").chmod(0o4755)
    (one / "closed").mkdir()
    (one / "closed" / "inner").write_text("y")
    (one / "closed").chmod(0o555)
    unpack(other, pack(one))
    assert stat.S_IMODE((other / "run").stat().st_mode) == 0o755
    assert stat.S_IMODE((other / "closed").stat().st_mode) == 0o555
    assert (other / "closed" / "inner").read_text() == "y"
    for root in (one, other):
        (root / "closed").chmod(0o755)


def test_pipes_and_sockets_are_left_out(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("x")
    assert [entry.name for entry in tarball.plan(os.fsencode(tmp_path), 10)] == [b"file"]


def test_too_many_files_are_refused(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / str(number)).touch()
    with pytest.raises(Refused) as refused:
        tarball.plan(os.fsencode(tmp_path), 4)
    assert refused.value.code == "too_big"


def test_a_file_that_shrank_is_padded(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 1000)
    entries = tarball.plan(os.fsencode(tmp_path), 10)
    (tmp_path / "file").write_bytes(b"y")
    assert len(b"".join(tarball.stream(os.fsencode(tmp_path), entries))) == tarball.total(entries)


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_archives_of_others_are_read(tmp_path: Path, form: int) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    long = "l" * 90
    (source / long).mkdir(parents=True)
    (source / long / long).write_text("deep")
    (source / "plain").write_text("x")
    (source / "link").symlink_to("plain")
    os.link(source / "plain", source / "zhard")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as archive:
        archive.add(source, arcname=".")
    target.mkdir()
    unpack(target, buffer.getvalue())
    assert look(os.fsencode(target)) == look(os.fsencode(source))


def test_others_read_ours(tmp_path: Path) -> None:
    build(
        os.fsencode(tmp_path / "t"), {b"n" * 150: {b"m" * 150: b"deep"}, b"link": (b"x" * 150,), b"f": b"1"}
    )
    with tarfile.open(fileobj=io.BytesIO(pack(tmp_path / "t"))) as archive:
        members = {member.name: member for member in archive.getmembers()}
        assert set(members) == {"f", "link", "n" * 150, "n" * 150 + "/" + "m" * 150}
        assert members["link"].linkname == "x" * 150
        assert {member.mtime for member in members.values()} == {0}


def _archive(*members: tuple[str, bytes, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, kind, link in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, link
            info.size = 1 if kind == tarfile.REGTYPE else 0
            archive.addfile(info, io.BytesIO(b"x"))
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("member", "code"),
    [
        (("../out", tarfile.REGTYPE, ""), "bad_path"),
        (("/abs", tarfile.REGTYPE, ""), "bad_path"),
        (("a/../../out", tarfile.REGTYPE, ""), "bad_path"),
        (("a//b", tarfile.REGTYPE, ""), "bad_path"),
        (("dev", tarfile.BLKTYPE, ""), "bad_archive"),
        (("dev", tarfile.CHRTYPE, ""), "bad_archive"),
        (("pipe", tarfile.FIFOTYPE, ""), "bad_archive"),
        (("hard", tarfile.LNKTYPE, "../../etc/passwd"), "bad_path"),
        (("hard", tarfile.LNKTYPE, "/etc/passwd"), "bad_path"),
        (("hard", tarfile.LNKTYPE, "nothing"), "bad_archive"),
    ],
)
def test_what_climbs_or_is_special_is_refused(
    tmp_path: Path, member: tuple[str, bytes, str], code: str
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    with pytest.raises(Refused) as refused:
        unpack(root, _archive(member))
    assert refused.value.code == code
    assert [path.name for path in tmp_path.iterdir()] == ["root"]


def test_a_member_below_a_symlink_replaces_the_link(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    unpack(root, _archive(("d", tarfile.SYMTYPE, str(outside)), ("d/file", tarfile.REGTYPE, "")))
    assert list(outside.iterdir()) == []
    assert (root / "d" / "file").read_bytes() == b"x"


@pytest.mark.parametrize("at", [0, 100, 130, 148, 156])
def test_damage_is_noticed(tmp_path: Path, at: int) -> None:
    data = bytearray(_archive(("f", tarfile.REGTYPE, "")))
    data[at] ^= 0x21
    with pytest.raises(Refused) as refused:
        unpack(tmp_path, bytes(data))
    assert refused.value.code == "bad_archive"


@given(st.binary(max_size=3000))
@settings(max_examples=50, deadline=None)
def test_garbage_is_refused_or_empty(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        with contextlib.suppress(Refused, ValueError):
            unpack(Path(folder), data)
        assert os.listdir(folder) == []


def test_keep_takes_paths_and_what_is_below(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    build(
        os.fsencode(source),
        {b"a": b"1", b"ab": b"2", b"d": {b"e": b"3", b"f": {b"g": b"4"}}, b"h": {b"i": b"5"}},
    )
    target.mkdir()
    unpack(target, pack(source), [b"a", b"d/f", b"h"])
    assert look(os.fsencode(target)) == {b"a": b"1", b"d": {b"f": {b"g": b"4"}}, b"h": {b"i": b"5"}}


def test_emptying_a_deep_tree_needs_neither_stack_nor_descriptors(tmp_path: Path) -> None:
    start = os.getcwd()
    os.chdir(tmp_path)
    try:
        for _ in range(1500):
            os.mkdir("d")
            os.chdir("d")
        Path("bottom").touch()
        os.chmod("../d", 0)
    finally:
        os.chdir(start)
    root = os.open(tmp_path, os.O_RDONLY)
    try:
        workspace.empty(root)
    finally:
        os.close(root)
    assert list(tmp_path.iterdir()) == []
