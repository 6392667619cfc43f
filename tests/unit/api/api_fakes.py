"""Stand-ins for the parts around the api: store, bus, orchestrator, clock, database (SQLite)."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import httpx
import zstandard
from sqlalchemy import event
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.ext.compiler import compiles

from sandpiper.bus.errors import BusUnavailable
from sandpiper.bus.message import Outgoing
from sandpiper.store.blobs import blob_to_json
from sandpiper.store.db.engine import Sessions, make_sessions
from sandpiper.store.db.models import Attempt, Base, Episode, Group, Run, TaskRow, TaskSet, Turn
from sandpiper.store.errors import CorruptObject, MissingObject, StoreUnavailable
from sandpiper.store.objects import ObjectStore
from sandpiper.tasks.model import Task
from sandpiper.v1.common_pb2 import Blob
from services.api.app import create_app
from services.api.idempotency import Replays
from services.api.intake.spool import Spooler
from services.api.keys import KeyRing
from services.api.live.executors import ExecutorRegistry
from services.api.live.hub import Hub
from services.api.services import Services
from services.api.settings import HttpSettings


@compiles(JSONB, "sqlite")
def _jsonb(element: object, compiler: object, **options: object) -> str:
    return "JSON"


class FakeClock:
    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.now = now

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now


class MemoryObjects:
    """An object store in memory."""

    def __init__(self) -> None:
        self.stored: dict[str, bytes] = {}
        self.down = False

    def uri(self, key: str) -> str:
        return f"s3://test/{key}"

    def key(self, uri: str) -> str:
        return uri.removeprefix("s3://test/")

    def _check(self) -> None:
        if self.down:
            raise StoreUnavailable("down")

    async def put(self, key: str, data: bytes) -> Blob:
        self._check()
        self.stored[key] = data
        return Blob(uri=self.uri(key), sha256=hashlib.sha256(data).hexdigest(), bytes=len(data))

    async def put_by_digest(self, prefix: str, data: bytes, suffix: str = "") -> Blob:
        return await self.put(f"{prefix}/{hashlib.sha256(data).hexdigest()}{suffix}", data)

    async def get(self, blob: Blob | str) -> bytes:
        self._check()
        uri, sha256 = (blob, "") if isinstance(blob, str) else (blob.uri, blob.sha256)
        data = self.stored.get(self.key(uri))
        if data is None:
            raise MissingObject(uri)
        if sha256 and hashlib.sha256(data).hexdigest() != sha256:
            raise CorruptObject(uri)
        return data

    async def get_to_file(self, blob: Blob | str, path: Path) -> None:
        data = await self.get(blob)
        await asyncio.to_thread(path.write_bytes, data)

    async def read(self, key: str) -> bytes | None:
        self._check()
        return self.stored.get(key)

    async def exists(self, key: str) -> bool:
        self._check()
        return key in self.stored

    async def list(self, prefix: str) -> list[str]:
        return sorted(key for key in self.stored if key.startswith(prefix))

    async def delete(self, key: str) -> None:
        self.stored.pop(key, None)


class FakeOrchestrator:
    """A publisher that does at once what the orchestrator does: writes the rows, drops repeated messages."""

    def __init__(self, sessions: Sessions, objects: MemoryObjects, clock: FakeClock) -> None:
        self.sessions, self.objects, self.clock = sessions, objects, clock
        self.sent: list[Outgoing] = []
        self.asleep = False
        self.down = False
        self._seen: set[str] = set()

    async def send(self, out: Outgoing, *, timeout: float | None = None) -> None:
        if self.down:
            raise BusUnavailable("no broker")
        self.sent.append(out)
        assert out.message_id is not None
        if self.asleep or out.message_id in self._seen:
            return
        self._seen.add(out.message_id)
        self.clock.now += 1
        if out.topic.name == "tasks.submitted":
            await self._task_set(out.message)
        else:
            await self._run(out.message)

    async def _task_set(self, message: Any) -> None:
        packed = await self.objects.get(message.tasks)
        raw = zstandard.ZstdDecompressor().decompressobj().decompress(packed)
        tasks = [Task.model_validate_json(line) for line in raw.splitlines()]
        assert len(tasks) == message.task_count
        row = TaskSet(
            id=message.task_set_id,
            name=message.name,
            version=message.version,
            tasks_blob=blob_to_json(message.tasks),
            task_count=message.task_count,
            submitted_by=message.submitted_by,
            created_at=self.clock.now,
        )
        async with self.sessions.begin() as session:
            session.add(row)
            await session.flush()
            session.add_all(task_row(row.id, number, task) for number, task in enumerate(tasks))

    async def _run(self, command: Any) -> None:
        async with self.sessions.begin() as session:
            if command.HasField("create"):
                document = json.loads(command.create.document_json)
                session.add(run_row(command.run_id, document, self.clock.now, command.create.requested_by))
                return
            row = await session.get(Run, command.run_id)
            assert row is not None
            row.state = {"pause": "paused", "resume": "running", "cancel": "cancelled"}[
                command.WhichOneof("command")
            ]


def task_row(task_set_id: str, number: int, task: Task) -> TaskRow:
    # The whole task on purpose: the api must strip what is secret whatever the row holds.
    return TaskRow(
        task_set_id=task_set_id,
        position=number,
        id=task.id,
        family=task.family,
        split=task.split,
        language=task.language,
        blob={},
        spec=task.model_dump(mode="json"),
    )


def run_row(ident: str, document: dict[str, Any], now: float, by: str = "local", **fields: Any) -> Run:
    values: dict[str, Any] = {
        "id": ident,
        "name": document.get("name", "run"),
        "mode": document.get("mode", "train"),
        "state": "waiting",
        "reason": None,
        "document": document,
        "task_set_id": document["tasks"]["task_set"],
        "policy_run_id": (document.get("policy") or {}).get("run_id") or ident,
        "policy_version": None,
        "step": 0,
        "next_group": 0,
        "requested_by": by,
        "created_at": now,
        "started_at": None,
        "finished_at": None,
        "trace_parent": "00-" + "a" * 32 + "-" + "b" * 16 + "-01",
    }
    return Run(**{**values, **fields})


def group_row(ident: str, run_id: str, index: int, now: float, task_id: str = "add-1") -> Group:
    return Group(
        id=ident,
        run_id=run_id,
        index=index,
        task_id=task_id,
        state="open",
        reason=None,
        size=8,
        quorum=6,
        deadline=now + 900,
        created_at=now,
        closed_at=None,
        submitted_at=None,
        trained_step=None,
    )


def episode_row(ident: str, run_id: str, group_id: str, index: int, now: float, **fields: Any) -> Episode:
    values: dict[str, Any] = {
        "id": ident,
        "run_id": run_id,
        "group_id": group_id,
        "index": index,
        "task_id": "add-1",
        "state": "queued",
        "reason": None,
        "attempt": 1,
        "turn": 0,
        "seed": 7,
        "trace_id": "c" * 32,
        "root_span_id": "d" * 16,
        "partition": None,
        "executor_id": None,
        "snapshot": None,
        "tokens": None,
        "stage_deadline": now + 60,
        "deadline": now + 600,
        "created_at": now,
        "stage_at": now,
        "finished_at": None,
        "reward": None,
        "reward_parts": None,
        "tests": None,
        "passed": None,
        "verdict": None,
        "evidence": None,
        "grader_version": None,
        "version_min": None,
        "version_max": None,
        "output_tokens": 0,
        "trained_step": None,
    }
    return Episode(**{**values, **fields})


def turn_row(episode_id: str, number: int, now: float, **fields: Any) -> Turn:
    values: dict[str, Any] = {
        "episode_id": episode_id,
        "attempt": 1,
        "number": number,
        "messages": [{"role": "user", "content": "write add"}],
        "text": "def add(a, b): return a + b",
        "finish_reason": "stop",
        "tokens": None,
        "prompt_tokens": 10,
        "output_tokens": 5,
        "version_min": 0,
        "version_max": 0,
        "engine": "torch",
        "action": {"kind": "write"},
        "outcome": "ok",
        "exit_code": 0,
        "usage": {"wall_s": 0.1},
        "observation": "passed",
        "log": None,
        "snapshot": None,
        "executor_id": "exec-1",
        "requested_at": now,
        "generated_at": now + 1,
        "executed_at": now + 2,
        "generate_s": 0.9,
        "generate_queued_s": 0.1,
    }
    return Turn(**{**values, **fields})


def attempt_row(episode_id: str, number: int, now: float, **fields: Any) -> Attempt:
    values: dict[str, Any] = {
        "episode_id": episode_id,
        "number": number,
        "state": "running",
        "boundary": None,
        "reason": None,
        "detail": None,
        "started_at": now,
        "ended_at": None,
    }
    return Attempt(**{**values, **fields})


async def make_database(folder: Path) -> tuple[AsyncEngine, Sessions]:
    """SQLite in a file of `folder`: sessions have connections of their own, as with Postgres."""
    engine = create_async_engine(f"sqlite+aiosqlite:///{folder / 'api.db'}")
    event.listen(engine.sync_engine, "connect", _fast)
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    return engine, make_sessions(engine)


def _fast(connection: Any, _record: object) -> None:
    for setting in ("synchronous=OFF", "journal_mode=WAL", "foreign_keys=OFF"):
        connection.execute(f"PRAGMA {setting}")


def make_services(
    sessions: Sessions,
    folder: Path,
    settings: HttpSettings | None = None,
    keys: KeyRing | None = None,
    checks: dict[str, Callable[[], Any]] | None = None,
) -> Services:
    """Services over fakes; SQLite stands for Postgres."""
    settings = settings or HttpSettings(materialise_s=0.2, heartbeat_s=0.05, idempotency_wait_s=2.0)
    objects, clock = MemoryObjects(), FakeClock()
    store = cast(ObjectStore, objects)
    return Services(
        settings=settings,
        keys=keys or KeyRing({}),
        sessions=sessions,
        objects=store,
        publisher=FakeOrchestrator(sessions, objects, clock),
        replays=Replays(store, clock, settings.idempotency_ttl_s, settings.idempotency_wait_s),
        spooler=Spooler(settings.uploads, folder),
        hub=Hub(settings.event_clients, settings.event_queue, settings.event_history),
        executors=ExecutorRegistry(clock),
        checks=checks or {},
        clock=clock,
        downloads=asyncio.Semaphore(2),
    )


def task_data(number: int = 1, **changes: Any) -> dict[str, Any]:
    """A small valid task as plain data."""
    data: dict[str, Any] = {
        "id": f"add-{number}",
        "family": f"add-{number}",
        "split": "train",
        "language": "python",
        "instruction": "Write `add(a, b)`.",
        "workspace": {"solution.py": "def add(a, b):\n    raise NotImplementedError\n"},
        "solution_path": "solution.py",
        "visible": {"runner": "asserts", "files": {"test_visible.py": "from solution import add\n"}},
        "hidden": {"runner": "asserts", "files": {"test_hidden.py": "HIDDEN = 1\n"}},
        "reference": {"solution.py": "def add(a, b):\n    return a + b\n"},
    }
    return {**data, **changes}


def jsonl(*tasks: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(task).encode() + b"\n" for task in tasks)


def client_of(services: Services) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(create_app(services), raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8080", timeout=10)
