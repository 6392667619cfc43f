"""The folder form, archives of it and JSONL say the same thing, and say where a mistake is."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
import zstandard

from sandpiper.tasks.archive import ArchiveLimits, archive_task_set, read_archive, write_archive
from sandpiper.tasks.folder import read_task, read_task_set, write_task_set
from sandpiper.tasks.jsonl import dump_jsonl, parse_line, read_jsonl
from sandpiper.tasks.model import Task
from sandpiper.tasks.problems import TaskSetError
from sandpiper.tasks.taskset import TaskSetInfo

INFO = TaskSetInfo(name="toy", version="2", description="Two tasks: one line")


def make_task(task_id: str = "add", **changes: object) -> Task:
    data: dict[str, object] = {
        "id": task_id,
        "family": "sums",
        "language": "python",
        "instruction": "Write add(a, b).\n",
        "workspace": {"solution.py": "def add(a, b): ...\n", "lib/util.py": "X = 1\r\n"},
        "solution_path": "solution.py",
        "visible": {"runner": "asserts", "files": {"test_visible.py": "def test(): pass\n"}},
        "hidden": {"runner": "asserts", "files": {"test_hidden.py": "def test(): pass\n"}},
        "reference": {"solution.py": "def add(a, b): return a + b\n"},
        "stop": ["\n```"],
        "reply_prefix": "```python\n",
        "limits": {"max_turns": 3},
        "reward": {"coverage_bonus": 0.1},
    }
    return Task.model_validate(data | changes)


def problems_of(error: pytest.ExceptionInfo[TaskSetError]) -> list[str]:
    return [str(found) for found in error.value.problems]


def test_folder_round_trip(tmp_path: Path) -> None:
    tasks = [make_task("add"), make_task("add-2", split="train", artifacts=("solution.py", "lib/util.py"))]
    write_task_set(INFO, tasks, tmp_path)
    assert read_task_set(tmp_path) == (INFO, tasks)
    assert read_task(tmp_path / "add") == tasks[0]


def test_archive_round_trip_with_and_without_top_folder() -> None:
    tasks = [make_task("add"), make_task("sub")]
    packed = archive_task_set(INFO, tasks)
    assert read_archive(io.BytesIO(packed)) == (INFO, tasks)
    assert packed == archive_task_set(INFO, tasks)
    raw = zstandard.ZstdDecompressor().decompressobj().decompress(packed)
    with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
        files = {f"set/{m.name}": archive.extractfile(m).read() for m in archive}  # type: ignore[union-attr]
    assert read_archive(io.BytesIO(write_archive(files))) == (INFO, tasks)


def test_jsonl_round_trip() -> None:
    tasks = [make_task("add"), make_task("sub")]
    assert list(read_jsonl(io.BytesIO(dump_jsonl(tasks) + b"\n"))) == tasks


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        (
            "add/task.yaml",
            "language: python\nfamily: f\nlimits: {wall_s: -1}\n",
            "add/task.yaml: limits.wall_s: ",
        ),
        (
            "add/task.yaml",
            "language: python\nfamily: f\nlimitz: {}\n",
            "add/task.yaml: limitz: unknown field",
        ),
        ("add/task.yaml", "language: cobol\n", "add/task.yaml: language: must be one of"),
        ("add/task.yaml", "a: [\n", "add/task.yaml: line 2: "),
        ("add/task.yaml", "- x\n", "add/task.yaml: must be a mapping"),
        (
            "add/task.yaml",
            "language: python\nfamily: f\nhidden_runner: node\n",
            "add/task.yaml: hidden.runner",
        ),
        (
            "add/task.yaml",
            "language: python\nfamily: f\nhidden_runner: x\n",
            "add/task.yaml: hidden_runner: ",
        ),
        ("add/instruction.md", "", "add/instruction.md: String should have at least 1 character"),
        ("add/notes.txt", "x", "add/notes.txt: unexpected file"),
        ("stray.txt", "x", "stray.txt: unexpected file"),
        ("taskset.yaml", "name: Bad Name\n", "taskset.yaml: name: 'Bad Name': use lower-case"),
    ],
)
def test_folder_errors_name_file_and_field(tmp_path: Path, path: str, text: str, expected: str) -> None:
    write_task_set(INFO, [make_task()], tmp_path)
    (tmp_path / path).write_text(text)
    with pytest.raises(TaskSetError) as error:
        read_task_set(tmp_path)
    assert any(line.startswith(expected) for line in problems_of(error)), problems_of(error)


def test_missing_parts_are_named(tmp_path: Path) -> None:
    write_task_set(INFO, [make_task()], tmp_path)
    (tmp_path / "add/tests/hidden/test_hidden.py").unlink()
    with pytest.raises(TaskSetError, match="add/tests/hidden/"):
        read_task_set(tmp_path)
    (tmp_path / "taskset.yaml").unlink()
    with pytest.raises(TaskSetError, match=r"taskset\.yaml: missing"):
        read_task_set(tmp_path)


def test_set_level_problems(tmp_path: Path) -> None:
    tasks = [make_task("a"), make_task("b", split="heldout")]
    with pytest.raises(TaskSetError, match="line 2: split: family 'sums' is 'train' in task 'a'"):
        list(read_jsonl(io.BytesIO(dump_jsonl(tasks))))
    with pytest.raises(TaskSetError, match="line 2: id: 'a' is already at line 1"):
        list(read_jsonl(io.BytesIO(dump_jsonl([tasks[0], tasks[0]]))))
    with pytest.raises(TaskSetError, match="no task"):
        list(read_jsonl(io.BytesIO(b"\n")))


def test_jsonl_names_every_bad_line() -> None:
    good = dump_jsonl([make_task()])
    with pytest.raises(TaskSetError) as error:
        list(read_jsonl(io.BytesIO(b"{\n" + good + b'{"id": "x"}\n')))
    lines = {found.line for found in error.value.problems}
    assert lines == {1, 3}
    assert any(found.field == "instruction" for found in error.value.problems)
    with pytest.raises(TaskSetError, match="line 7: longer than"):
        parse_line(b" " * (8 * 1024 * 1024 + 1), 7)


def hostile(*members: tarfile.TarInfo) -> io.BytesIO:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for member in members:
            archive.addfile(member, io.BytesIO(b"x" * member.size))
    return io.BytesIO(zstandard.ZstdCompressor().compress(buffer.getvalue()))


def member(name: str, kind: bytes = tarfile.REGTYPE, size: int = 0) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.size, made.linkname = kind, size, "/etc/passwd"
    return made


@pytest.mark.parametrize(
    ("archive", "reason"),
    [
        (hostile(member("../up")), "inside the workspace"),
        (hostile(member("/abs")), "inside the workspace"),
        (hostile(member("a/../../b")), "inside the workspace"),
        (hostile(member("link", tarfile.SYMTYPE)), "only regular files"),
        (hostile(member("hard", tarfile.LNKTYPE)), "only regular files"),
        (hostile(member("dev", tarfile.CHRTYPE)), "only regular files"),
        (hostile(member("fifo", tarfile.FIFOTYPE)), "only regular files"),
        (hostile(member("twice"), member("./twice")), "twice"),
        (hostile(member("big", size=2000)), "larger than 1000 bytes"),
        (hostile(*(member(f"f{i}", size=900) for i in range(40))), "unpacks to more than"),
        (hostile(*(member(f"f{i}") for i in range(12))), "more than 10 files"),
        (io.BytesIO(b"plain"), "not a zstd archive"),
        (io.BytesIO(zstandard.compress(b"not a tar" * 200)), "not a tar archive"),
    ],
)
def test_hostile_archives_are_refused(archive: io.BytesIO, reason: str) -> None:
    limits = ArchiveLimits(total_bytes=20_000, file_bytes=1000, files=10)
    if "unpacks" in reason:
        limits = ArchiveLimits(total_bytes=20_000, file_bytes=1000, files=1000)
    with pytest.raises(TaskSetError, match=reason):
        read_archive(archive, limits)
