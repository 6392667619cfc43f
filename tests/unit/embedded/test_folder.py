"""Data folder, ports, options, environment, logs."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from sandpiper.embedded import reaper, s3, services
from sandpiper.embedded.errors import StackError
from sandpiper.embedded.options import StackOptions
from sandpiper.embedded.ports import Ports
from sandpiper.embedded.rotation import rotate
from sandpiper.embedded.state import DataFolder, StackState


def state(**changes: object) -> StackState:
    values: dict[str, object] = {
        "token": "t",
        "supervisor_pid": os.getpid(),
        "supervisor_ticks": reaper.start_ticks(os.getpid()),
        "temp_dir": "/tmp/x",
        "bootstrap": "127.0.0.1:1",
        "database_url": "postgresql+asyncpg://u:p@127.0.0.1:2/d",
        "objects_endpoint": "127.0.0.1:3",
        "objects_access_key": "access",
        "objects_secret_key": "secret",
    }
    return StackState.model_validate(values | changes)


def test_one_supervisor_per_folder(tmp_path: Path) -> None:
    first, second = DataFolder(tmp_path / "data"), DataFolder(tmp_path / "data")
    first.lock()
    with pytest.raises(StackError, match="already runs"):
        second.lock()
    first.unlock()
    second.lock()
    second.unlock()


def test_secrets_last_and_are_private(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    made = folder.secrets()
    assert DataFolder(tmp_path).secrets() == made
    assert len(made.access_key) >= 10
    assert len(made.secret_key) >= 10
    assert DataFolder(tmp_path / "other" / "..").secrets() == made
    assert stat.S_IMODE((tmp_path / "secrets.json").stat().st_mode) == 0o600


def test_state_round_trip_is_private(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    assert folder.read_state() is None
    folder.write_state(state())
    assert folder.read_state() == state()
    assert stat.S_IMODE(folder.state_file.stat().st_mode) == 0o600
    folder.forget_state()
    folder.forget_state()
    assert folder.read_state() is None


def test_a_damaged_state_is_named(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    folder.state_file.write_text("{")
    with pytest.raises(StackError, match=r"stack\.json is damaged"):
        folder.read_state()


def test_a_reused_pid_is_not_taken_for_the_supervisor() -> None:
    assert state().supervisor_alive
    assert not state(supervisor_ticks=1).supervisor_alive
    assert not state(supervisor_pid=2**22 + 1).supervisor_alive


def test_ports_are_free_and_given_once() -> None:
    ports = Ports()
    taken = [ports.take(0, "x", "") for _ in range(20)]
    assert len(set(taken)) == 20
    assert all(20_000 <= port <= 32_000 for port in taken)


def test_a_taken_port_is_named_with_the_way_out() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(
            StackError, match=rf"port {port} for the API is taken on 127\.0\.0\.1; use --port"
        ):
            Ports().take(port, "the API", "use --port")


def test_the_same_wanted_port_twice_is_a_conflict() -> None:
    ports = Ports()
    port = ports.take(0, "x", "")
    with pytest.raises(StackError, match="for the broker is taken"):
        ports.take(port, "the broker", "choose another")


def test_instances_are_numbered_from_the_second(tmp_path: Path) -> None:
    options = StackOptions(data_dir=tmp_path, replicas={"sandbox-executor": 3, "api": 1, "learner": 0})
    names = [name for _, name in services.instances(options)]
    assert names == ["api", "sandbox-executor", "sandbox-executor-2", "sandbox-executor-3"]
    assert services.module("sandbox-executor") == "services.sandbox_executor"


def test_environment_of_a_service(tmp_path: Path) -> None:
    options = StackOptions(
        data_dir=tmp_path,
        engine="torch",
        api_port=8123,
        env={"SANDPIPER_LOG_LEVEL": "debug"},
        service_env={"learner": {"SANDPIPER_X": "1"}},
    )
    inherited = {"PATH": "/bin", "SANDPIPER_DATA_DIR": "callers", "SANDPIPER_LOG_LEVEL": "info"}

    def environment(service: str) -> dict[str, str]:
        work = tmp_path / "work"
        return services.environment(
            service, options, inherited, state().client_env(), 9, work, tmp_path / "tmp"
        )

    learner, api, inference = environment("learner"), environment("api"), environment("inference")
    assert learner["PATH"] == "/bin"
    assert learner["OTEL_SERVICE_NAME"] == "learner"
    assert learner["SANDPIPER_DATA_DIR"] == str(tmp_path / "work")
    assert learner["SANDPIPER_LOG_LEVEL"] == "debug"
    assert learner["SANDPIPER_X"] == "1"
    assert learner["SANDPIPER_BUS__BROKER"] == "tansu"
    assert learner["TMPDIR"] == str(tmp_path / "tmp")
    assert "SANDPIPER_X" not in api
    assert api["SANDPIPER_HTTP__PORT"] == "8123"
    assert inference["SANDPIPER_ENGINE"] == "torch"
    assert "SANDPIPER_ENGINE" not in api


def test_logs_are_bounded_and_writers_go_on(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    with path.open("ab", buffering=0) as writer:
        writer.write(b"x" * 2000)
        assert rotate(tmp_path, 1000) == [path]
        writer.write(b"after")
    assert path.read_bytes() == b"after"
    assert (tmp_path / "a.log.1").stat().st_size == 2000
    assert rotate(tmp_path, 1000) == []


def test_half_written_uploads_are_swept(tmp_path: Path) -> None:
    deep = tmp_path / "bucket" / "deep"
    deep.mkdir(parents=True)
    (deep / ".rclone_temp_put_abc").touch()
    (deep / "object").touch()
    assert s3.sweep(tmp_path) == 1
    assert [path.name for path in deep.iterdir()] == ["object"]
    assert s3.sweep(tmp_path / "absent") == 0
