from __future__ import annotations

from pathlib import Path

from sandpiper.cli.stack_logs import Follower, files, show


def test_last_lines_of_each_log(tmp_path: Path) -> None:
    (tmp_path / "api.log").write_text("1\n2\n3\n")
    (tmp_path / "learner.log").write_text("4\n5")
    (tmp_path / "learner.log.1").write_text("old")
    said: list[str] = []
    show(files(tmp_path), 2, False, said.append)
    assert said == ["api     | 2", "api     | 3", "learner | 4", "learner | 5"]


def test_one_log_has_no_prefix(tmp_path: Path) -> None:
    (tmp_path / "api.log").write_text("1\n2\n")
    said: list[str] = []
    show(files(tmp_path), 50, False, said.append)
    assert said == ["1", "2"]


def test_following_gives_whole_lines_and_survives_truncation(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("before\n")
    follower = Follower(path, path.stat().st_size)
    with path.open("a") as file:
        file.write("one\ntw")
    assert follower.read() == ["one"]
    with path.open("a") as file:
        file.write("o\n")
    assert follower.read() == ["two"]
    path.write_text("new\n")
    assert follower.read() == ["new"]
    assert follower.read() == []
