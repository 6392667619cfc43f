"""The `sandpiper` command: what it sends, what it prints, how it exits."""

from __future__ import annotations

import hashlib
import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from rich.console import Console
from typer.testing import Result

from sandpiper.cli import watch
from sandpiper.cli.context import discover
from sandpiper.cli.documents import apply, load_document
from sandpiper.cli.errors import BadInput
from sandpiper.cli.evaluate import policy_source
from sandpiper.cli.render import clean, duration, tail
from tests.unit.cli.cli_fakes import FakeApi, body_of, episode_data, page, problem, run_data, turn_data

Command = Callable[..., Result]


def test_help_lists_every_command(command: Command) -> None:
    shown = command("--help").output
    for name in ("up", "down", "status", "logs", "tasks", "run", "episode", "policy", "eval", "api-key"):
        assert f" {name} " in shown
    for group in ("tasks", "run", "episode", "policy", "api-key"):
        assert command(group, "--help").exit_code == 0
    assert "--detach" in command("up", "--help").output


def test_run_create_sends_the_changed_document(command: Command, api: FakeApi, tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("name: mine\ntasks: {task_set: starter}\nbudget: {steps: 8}\n")
    api.on("POST /v1/runs", httpx.Response(201, json={"id": "run-1"}))
    api.on("GET /v1/runs/run-1", run_data(state="waiting"))
    result = command(
        "run", "create", str(file), "--set", "budget.steps=2", "--set", "algorithm.betas=[0.8, 0.9]"
    )
    assert result.exit_code == 0, result.output
    assert "run run-1 is waiting" in result.output
    sent = body_of(api.requests[0])
    assert sent["budget"] == {"steps": 2}
    assert sent["algorithm"] == {"betas": [0.8, 0.9]}


def test_run_create_reads_stdin(command: Command, api: FakeApi) -> None:
    api.on("POST /v1/runs", {"id": "run-1"})
    api.on("GET /v1/runs/run-1", run_data())
    result = command("run", "create", "-", "--json", input='{"tasks": {"task_set": "s"}}')
    assert json.loads(result.stdout)["id"] == "run-1"


def test_run_create_wait_exits_by_the_end_of_the_run(command: Command, api: FakeApi, tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("tasks: {task_set: starter}\n")
    api.on("POST /v1/runs", {"id": "run-1"})
    api.on(
        "GET /v1/runs/run-1", run_data(), run_data(step=3), run_data(state="failed", reason="learner: oom")
    )
    result = command("run", "create", str(file), "--wait")
    assert result.exit_code == 4
    assert "learner: oom" in result.output
    assert "step 3/8" in result.output
    api.on("GET /v1/runs/run-1", run_data(state="succeeded"))
    assert command("run", "create", str(file), "--wait", "--json").exit_code == 0


def test_a_refusal_is_one_clear_line(command: Command, api: FakeApi, tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("tasks: {}\n")
    api.on("POST /v1/runs", problem(422, "tasks.task_set: Field required"))
    result = command("run", "create", str(file))
    assert result.exit_code == 1
    assert result.stderr == "sandpiper: tasks.task_set: Field required (HTTP 422)\n"
    assert result.stdout == ""


def test_no_api_is_exit_3(command: Command, api: FakeApi) -> None:
    api.on("GET /v1/runs", httpx.ConnectError("refused"))
    result = command("run", "list")
    assert result.exit_code == 3
    assert "sandpiper up" in result.stderr
    assert "Traceback" not in result.output


def test_ctrl_c_is_exit_130(command: Command, api: FakeApi) -> None:
    def interrupt(request: httpx.Request) -> httpx.Response:
        raise KeyboardInterrupt

    api.on("GET /v1/runs/run-1", interrupt)
    result = command("run", "watch", "run-1")
    assert result.exit_code == 130
    assert result.stderr == "interrupted\n"


def test_watching_too_long_is_exit_5(command: Command, api: FakeApi) -> None:
    api.on("GET /v1/runs/run-1", run_data())
    result = command("run", "watch", "run-1", "--timeout", "0.5")
    assert result.exit_code == 5
    assert "still running" in result.stderr


def test_wrong_usage_is_exit_2(command: Command) -> None:
    assert command("run", "create").exit_code == 2
    assert command("run", "create", "/nowhere.yaml").exit_code == 2
    assert command("nonsense").exit_code == 2


@pytest.mark.parametrize("verb", ["pause", "resume", "cancel"])
def test_control(command: Command, api: FakeApi, verb: str) -> None:
    api.on(f"POST /v1/runs/run-1/{verb}", {"id": "run-1"})
    api.on("GET /v1/runs/run-1", run_data(state="paused"))
    result = command("run", verb, "run-1")
    assert result.output == "run run-1 is paused\n"
    api.on(f"POST /v1/runs/run-1/{verb}", problem(409, "run run-1 is succeeded"))
    assert command("run", verb, "run-1").exit_code == 1


def test_lists_and_json(command: Command, api: FakeApi) -> None:
    long = "run-01j9abcdefghjkmnpqrstvwxyz"
    api.on("GET /v1/runs", page(run_data(long)))
    assert long in command("run", "list").output
    assert json.loads(command("run", "list", "--json").stdout)[0]["id"] == long
    api.on(
        "GET /v1/task-sets", page({"name": "s", "version": "1", "task_count": 3, "created_at": 1, "id": "t"})
    )
    assert "s@1" in command("tasks", "list").output
    row = {"version": 3, "step": 3, "published_at": 1.0, "weights_sha256": "f" * 64}
    api.on("GET /v1/policies", page(row))
    assert "f" * 64 in command("policy", "list", "run-1").output


def test_run_show(command: Command, api: FakeApi) -> None:
    api.on("GET /v1/runs/run-1", run_data())
    shown = command("run", "show", "run-1").output
    assert "1:01:40" in shown
    assert "pass rate 50.0 %" in shown
    assert "loss" in shown


def test_tasks_show(command: Command, api: FakeApi) -> None:
    api.on("GET /v1/task-sets/starter", {"id": "ts-1", "name": "starter", "version": "1"})
    task = {"id": "add-1", "family": "add", "split": "train", "language": "python", "spec": {}}
    api.on("GET /v1/task-sets/ts-1/tasks", page(task))
    assert "add-1" in command("tasks", "show", "starter", "--split", "train").output
    assert api.requests[-1].url.params["split"] == "train"


def test_tasks_submit_prints_errors_with_their_places(command: Command, api: FakeApi, tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text("{}\n[]\n")
    errors = [{"message": "no", "line": 1, "field": "id"}, {"message": "bad", "line": 2}]
    api.on("POST /v1/task-sets", problem(422, "line 1: id: no", errors=errors))
    result = command("tasks", "submit", str(file), "--name", "x")
    assert result.exit_code == 1
    assert "  line 2: bad" in result.stderr


def test_episode_list_filters_and_stops_at_the_limit(command: Command, api: FakeApi) -> None:
    episodes = [episode_data(f"ep-{number}") for number in range(3)]
    api.on("GET /v1/runs/run-1/episodes", page(*episodes, cursor="more"))
    result = command("episode", "list", "run-1", "--failed", "--step", "2", "-n", "3")
    assert "ep-2" in result.output
    assert len(api.requests) == 1
    params = api.requests[0].url.params
    assert (params["passed"], params["trained_step"], params["limit"]) == ("false", "2", "3")


def full_episode(**changes: Any) -> dict[str, Any]:
    return {
        **episode_data(),
        "seed": 1,
        "grader_version": "1",
        "reward_parts": [{"name": "functional", "value": 1.0, "weight": 1.0, "explanation": "all passed"}],
        "tests": [{"id": "test_a", "status": "passed", "kind": "", "message": "", "seconds": 0.01}],
        "has_evidence": True,
        "deadline": 9.0,
        "attempts": [
            {
                "number": 1,
                "state": "failed",
                "boundary": "sandbox",
                "reason": "lost",
                "detail": "node died",
                "started_at": 1,
                "ended_at": 2,
            }
        ],
        "turns": [turn_data()],
        **changes,
    }


def test_episode_show_has_every_part_and_obeys_nothing(command: Command, api: FakeApi) -> None:
    api.on("GET /v1/episodes/ep-1", full_episode())
    shown = command("episode", "show", "ep-1").output
    for needle in (
        "the end of the prompt",
        "characters above",
        "[bold]not markup[/bold]",
        "nonzero_exit",
        "exit 1",
        "1 failed",
        "functional",
        "all passed",
        "test_a",
        "c" * 32,
        "attempt 1 failed at sandbox: lost",
        "generated in 0.80 s",
        "files=solution.py",
    ):
        assert needle in shown, needle
    assert "\x1b" not in shown
    assert "secret body" not in shown
    assert "x" * 900 not in shown.replace("\n", "").replace("│", "").replace(" ", "")
    full = command("episode", "show", "ep-1", "--full").output
    assert "characters above" not in full
    assert json.loads(command("episode", "show", "ep-1", "--json").stdout)["id"] == "ep-1"


def test_episode_log_shows_no_control_characters(command: Command, api: FakeApi) -> None:
    api.on("GET /v1/episodes/ep-1/turns/0/log", httpx.Response(200, text="a\x1b[31mb\n"))
    result = command("episode", "log", "ep-1")
    assert "a␛[31mb" in result.output


def test_eval_counts_verdicts_only(command: Command, api: FakeApi) -> None:
    api.on("POST /v1/runs", {"id": "run-1"})
    done = run_data(state="succeeded", mode="eval", steps_budget=None)
    api.on("GET /v1/runs/run-1", done)
    verdicts = [True, True, False, None]
    episodes = [episode_data(f"e{n}", task_id=f"t{n}", passed=v) for n, v in enumerate(verdicts)]
    api.on("GET /v1/runs/run-1/episodes", page(*episodes))
    arguments = ("eval", "--policy", "run-abc@3", "--tasks", "starter", "--limit", "4", "--json")
    result = command(*arguments)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["passed"], found["episodes"], found["without_verdict"]) == (2, 3, 1)
    assert found["pass_at_1"] == pytest.approx(2 / 3)
    # Wilson 95 % interval of 2 in 3.
    assert found["ci_low"] == pytest.approx(0.2077, abs=1e-3)
    assert found["ci_high"] == pytest.approx(0.9385, abs=1e-3)
    document = body_of(api.requests[0])
    assert document["policy"] == {"kind": "run", "run_id": "run-abc", "version": 3}
    assert document["tasks"] == {"task_set": "starter", "split": "heldout", "limit": 4}
    assert document["sampling"] == {"temperature": 0.0}
    shown = command(*arguments[:-1]).output
    assert "pass@1 66.7 %" in shown
    assert "1 episodes have no verdict" in shown
    assert found["by_task"]["t2"] == {"passed": 0, "episodes": 1}
    assert "t3" not in found["by_task"]
    by_task = [line.split() for line in command(*arguments[:-1], "--by-task").output.splitlines()[-3:]]
    assert [row[:3] for row in by_task] == [["t2", "0", "1"], ["t0", "1", "1"], ["t1", "1", "1"]]


def test_a_failed_evaluation_is_exit_4(command: Command, api: FakeApi) -> None:
    api.on("POST /v1/runs", {"id": "run-1"})
    api.on("GET /v1/runs/run-1", run_data(state="failed", reason="no engine"))
    api.on("GET /v1/runs/run-1/episodes", page())
    result = command("eval", "--policy", "starter", "--tasks", "starter")
    assert result.exit_code == 4
    assert "no engine" in result.output
    assert "pass@1" not in result.output


@pytest.mark.parametrize("arguments", [("r@1",), ("r", "--version", "1")])
def test_a_version_is_exported_by_either_spelling(
    command: Command, api: FakeApi, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    api.on("GET /v1/runs/r/policies/1", problem(404, "no such version"))
    result = command("policy", "export", *arguments, "--out", str(tmp_path / "out"))
    assert "no such version" in result.output
    assert [request.url.path for request in api.requests] == ["/v1/runs/r/policies/1"]


@pytest.mark.parametrize("arguments", [("r@x",), ("r@",), ("r@1", "--version", "1")])
def test_a_version_is_given_once(command: Command, api: FakeApi, arguments: tuple[str, ...]) -> None:
    result = command("policy", "export", *arguments, "--out", "out")
    assert "version once" in result.output or "whole number" in result.output
    assert not api.requests


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("starter", {"kind": "starter"}),
        ("tiny", {"kind": "tiny"}),
        ("run-1", {"kind": "run", "run_id": "run-1"}),
        ("run-1@0", {"kind": "run", "run_id": "run-1", "version": 0}),
        ("hub:a/b", {"kind": "hub", "hub_id": "a/b"}),
        ("path:/m", {"kind": "path", "path": "/m"}),
    ],
)
def test_policy_words(text: str, source: dict[str, Any]) -> None:
    assert policy_source(text) == source


@pytest.mark.parametrize("text", ["", "nonsense", "run-1@x", "hub:", "RUN-1"])
def test_policy_words_that_mean_nothing(text: str) -> None:
    with pytest.raises(BadInput):
        policy_source(text)


def test_api_keys_hash_to_their_line(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "keys"
    made = json.loads(command("api-key", "create", "anna", "--file", str(file), "--json").stdout)
    assert hashlib.sha256(made["key"].encode()).hexdigest() == made["sha256"]
    assert file.read_text() == f"anna {made['sha256']}\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert made["key"] not in file.read_text()
    assert command("api-key", "create", "ben", "--file", str(file)).exit_code == 0
    assert len(file.read_text().splitlines()) == 2
    assert command("api-key", "create", "anna", "--file", str(file)).exit_code == 2
    assert command("api-key", "create", "Bad Name").exit_code == 2


def test_changes_of_a_document() -> None:
    document: dict[str, Any] = {"a": {"b": 1}, "c": 2}
    for change in ("a.b=2", "a.x.y=null", "d=text", "e=[1, 2]", "f=a=b"):
        apply(document, change)
    assert document == {"a": {"b": 2, "x": {"y": None}}, "c": 2, "d": "text", "e": [1, 2], "f": "a=b"}
    for bad in ("a", "=1", "a..b=1", "c.d=1", "a=[", ".=1"):
        with pytest.raises(BadInput):
            apply(document, bad)


def test_documents_that_cannot_be_read(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    for text in ("[", "- 1", "just text", "", "a: 1\na: 2\n", "a: 2020-99-99\n"):
        file.write_text(text)
        with pytest.raises(BadInput):
            load_document(file)
    with pytest.raises(BadInput):
        load_document(tmp_path)


def test_a_policy_folder_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.yaml").write_text("policy: {kind: path, path: mine}\n")
    assert load_document(Path("x.yaml"))["policy"]["path"] == str(tmp_path / "mine")


def test_the_running_stack_is_found(tmp_path: Path) -> None:
    inner = tmp_path / "a/b"
    inner.mkdir(parents=True)
    assert discover(inner, {}) == "http://127.0.0.1:8080"
    (tmp_path / ".sandpiper").mkdir()
    state = tmp_path / ".sandpiper/stack.json"
    state.write_text('{"api_url": "http://127.0.0.1:9999"}')
    assert discover(inner, {}) == "http://127.0.0.1:9999"
    other = tmp_path / "other"
    other.mkdir()
    assert discover(inner, {"SANDPIPER_DATA_DIR": str(other)}) == "http://127.0.0.1:8080"
    for damaged in ("{", "[]", '{"api_url": 3}', '{"api_url": ""}'):
        state.write_text(damaged)
        assert discover(inner, {}) == "http://127.0.0.1:8080"


def test_words() -> None:
    assert [duration(value) for value in (None, 0, 59.6, 61, 3700)] == [
        "–",
        "0:00",
        "1:00",
        "1:01",
        "1:01:40",
    ]
    assert tail("abc", 3) == "abc"
    assert tail("abcdef", 2) == "… [4 characters above]\nef"
    assert clean("a\x07\x9b\n\tb\r") == "a␇\ufffd\n\tb␍"


def test_the_screen_shows_what_counts() -> None:
    out = Console(record=True, width=160, force_terminal=True)
    executors = {"sandboxes": 7, "running": 3}
    out.print(watch.screen(run_data(), [episode_data()], executors))
    shown = out.export_text()
    for needle in (
        "step 1/8",
        "50.0 %",
        "0.250",
        "120 tokens/s",
        "0.50 (max 1)",
        "7 (3 busy)",
        "1:01:40",
        "ep-1",
    ):
        assert needle in shown, needle
    out.print(watch.screen(run_data(mode="eval", steps_budget=None, recent_steps=[]), [], None))
