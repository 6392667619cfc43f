"""Continuous batching on one `Model`: requests join and leave between decode steps.

Invariants
* Row n of the cache belongs to `running[n]`; a row that ends is replaced by the last one.
* A request's keys and values stand for all of its tokens but the newest, under the present weights only.
* So do the prefixes that are kept of requests that ended.
* Requests are admitted in the order of their arrival, as long as rows x longest request fit the budget.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from sandpiper.token_ids import Ids, common_prefix
from services.inference.engines.base import Generation, Sampling, StopRule, uniform
from services.inference.engines.draw import draw
from services.inference.engines.model import Model
from services.inference.engines.prefixes import Prefixes, Stored


@dataclass(eq=False)
class Request:
    """One generation under way. `cancelled` may be set from any thread."""

    prompt: list[int]
    sampling: Sampling
    stops: StopRule
    generation: Generation = field(default_factory=Generation)
    cancelled: bool = False

    @property
    def ids(self) -> list[int]:
        """Prompt and output so far."""
        return self.prompt + self.generation.output_ids

    @property
    def room(self) -> int:
        """Most tokens that it can come to."""
        return len(self.prompt) + self.sampling.max_new_tokens

    def random(self) -> float:
        """The random number of its next token."""
        return uniform(self.sampling.seed, len(self.generation.output_ids))

    def take(self, token: int, logprob: float, version: int) -> None:
        """Add a token; sets the finish reason when it is the last."""
        self.generation.add(token, logprob, version)
        if self.stops.push(token):
            self.generation.finish_reason = "stop"
        elif len(self.generation.output_ids) >= self.sampling.max_new_tokens:
            self.generation.finish_reason = "length"


class Batch:
    """See the module's docstring. Not thread-safe, except `submit`."""

    def __init__(self, model: Model, max_batch: int, kv_bytes: int, prefix_bytes: int = 0) -> None:
        self._model = model
        self._prefixes = Prefixes(prefix_bytes // model.bytes_per_token)
        self._max_batch = max_batch
        self._budget = max(kv_bytes // model.bytes_per_token, 1)
        self._waiting: deque[Request] = deque()
        self._running: list[Request] = []
        self.version = 0

    @property
    def budget(self) -> int:
        """Tokens of keys and values that may be stored at once."""
        return self._budget

    @property
    def busy(self) -> bool:
        """True while there is anything to do."""
        return bool(self._waiting or self._running)

    def submit(self, request: Request) -> None:
        """Queue a request; the next step may admit it."""
        self._waiting.append(request)

    def step(self) -> list[Request]:
        """Admit what fits, then one token for every running request. Returns the requests that ended."""
        with torch.inference_mode():
            return self._step()

    def _step(self) -> list[Request]:
        self._drop_cancelled()
        self._admit()
        ended = self._collect()
        if self._running:
            newest = [r.generation.output_ids[-1] for r in self._running]
            positions = [len(r.prompt) + len(r.generation.output_ids) - 1 for r in self._running]
            self._take(self._running, self._model.decode(newest, positions))
            ended += self._collect()
        return ended

    def load(self, version: int) -> None:
        """New weights are in: every running request starts over from its tokens, ahead of the queue."""
        self._waiting.extendleft(reversed(self._running))
        self._running = []
        self._prefixes.clear()
        self.version = version

    def drain(self) -> list[Request]:
        """Give up everything; returns what was queued or running."""
        lost = [*self._running, *self._waiting]
        self._running = []
        self._waiting.clear()
        return lost

    def _admit(self) -> None:
        wave: list[Request] = []
        while self._waiting and self._fits(self._waiting[0]):
            request = self._waiting.popleft()
            if not request.cancelled:
                wave.append(request)
                self._running.append(request)
        if not wave:
            return
        first = len(self._running) - len(wave)
        self._model.cache.reserve(*self._shape(self._running), used=first)
        self._take(wave, self._read_prompts(wave, first))

    def _read_prompts(self, wave: Sequence[Request], first: int) -> torch.Tensor:
        """Prefill rows `first`...: each prompt from where it differs from whatever was read before, and
        equal prompts (the episodes of a group) once."""
        read: dict[bytes, torch.Tensor] = {}
        ids_of = [*(r.ids[:-1] for r in self._running[:first]), *(r.ids for r in wave)]
        rows = [np.array(ids, dtype=np.int64) for ids in ids_of]
        for row in range(first, first + len(wave)):
            ids = rows[row]
            start = self._copy_longest(rows[:row], row, ids)
            if ids.tobytes() not in read:
                start = min(start, len(ids) - 1)
                read[ids.tobytes()] = self._model.prefill(ids.tolist(), row, start)
        return torch.stack([read[rows[row].tobytes()] for row in range(first, first + len(wave))])

    def _copy_longest(self, before: Sequence[Ids], row: int, ids: Ids) -> int:
        """Copy what the most similar of the rows `before` or of the stored prefixes shares with `ids`."""
        shared = [common_prefix(other, ids) for other in before]
        source = max(range(len(shared)), key=shared.__getitem__, default=None)
        length, stored = self._prefixes.longest(ids)
        if source is not None and shared[source] >= length:
            self._model.cache.copy_row(source, row, shared[source])
            return shared[source]
        if stored is not None:
            self._model.cache.write_row(row, length, stored.keys, stored.values)
        return length

    def _take(self, requests: Sequence[Request], logits: torch.Tensor) -> None:
        tokens, logprobs = draw(logits, [r.sampling for r in requests], [r.random() for r in requests])
        for request, token, logprob in zip(requests, tokens, logprobs, strict=True):
            request.take(token, logprob, self.version)

    def _collect(self) -> list[Request]:
        ended = [r for r in self._running if r.generation.finish_reason is not None]
        for request in ended:
            self._keep(request)
            self._remove(request)
        return ended

    def _keep(self, request: Request) -> None:
        if self._prefixes.budget:
            ids = np.array(request.ids[:-1], dtype=np.int64)  # the newest has no keys yet
            row = self._running.index(request)
            self._prefixes.put(Stored(ids, *self._model.cache.read_row(row, len(ids))))

    def _drop_cancelled(self) -> None:
        for request in [r for r in self._running if r.cancelled]:
            self._remove(request)

    def _remove(self, request: Request) -> None:
        row, last = self._running.index(request), self._running.pop()
        if last is not request:
            self._running[row] = last
            self._model.cache.copy_row(len(self._running), row, len(last.ids))

    def _fits(self, request: Request) -> bool:
        if len(self._running) >= self._max_batch:
            return False
        rows, length = self._shape([*self._running, request])
        return not self._running or rows * length <= self._budget

    def _shape(self, requests: Sequence[Request]) -> tuple[int, int]:
        rows = min(1 << (len(requests) - 1).bit_length(), self._max_batch)
        return rows, max(r.room for r in requests)
