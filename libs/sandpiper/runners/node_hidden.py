"""Grades JavaScript: the supervisor between node's test runner (hidden tests) and the candidate's node.

    python3 -I -S -B node_hidden.py       (working directory: the workspace; SANDPIPER_RESULT_FD=<n>)

Three processes: this one holds plan, nonce and private descriptor; one node holds tests and expected
values; one node holds the candidate. Requests of the tests pass through here, so that a candidate that
hangs or dies is replaced and its call ends. Weaker than the Python runner in one way: the node that holds
the tests cannot be made undumpable, so a candidate of the same user may look for expected values in its
memory (not for the nonce).
"""

from __future__ import annotations

import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

import json

from sandpiper.runners import codec
from sandpiper.runners.frames import SIGXCPU, Child, Died, Late, exit_text
from sandpiper.runners.grading import ENVIRONMENT, MESSAGE_CHARS, SHORTEST_S, missing_artifacts
from sandpiper.runners.private import PrivateChannel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
START_CPU_S = 1.0
"""For node itself; the limit counts over all calls to one process, since starting one per test is slow."""
GRACE_S = 1.0
"""For the test process to report after the budget is used up."""
STATUSES = ("passed", "failed", "error", "missing")


class Supervisor:
    """Relays between the two nodes until the tests are done."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        self.node = _node()
        self.end = time.monotonic() + plan["wall_s"]
        self.candidate: Child | None = None
        script = [f"--test-reporter={HERE}/node_results.cjs", "--test-reporter-destination=stderr"]
        tests = [self.node, *script, f"{HERE}/node_tests.cjs"]
        self.tests = Child(tests, dict(ENVIRONMENT), START_CPU_S + plan["cpu_s"])

    def run(self) -> dict[str, dict[str, Any]]:
        """Results by test id; those of a test process that did not finish are absent."""
        try:
            self._to_tests(b"P" + json.dumps(self.plan).encode())
            while True:
                frame = self.tests.receive(self.end + GRACE_S)
                if frame[:1] == b"D":
                    return self._results(json.loads(frame[1:]))
                self._to_tests(self._relay(frame))
        except Late:
            return self._all("failed", "timeout", "the tests were still running when the time was up")
        except Died:
            status = self.tests.kill()
            if not os.WIFSIGNALED(status):
                raise RuntimeError(f"the test process ended: {exit_text(status)}") from None
            return self._all("error", "exception", f"the test process was {exit_text(status)}")
        finally:
            self._stop_candidate()

    def _relay(self, frame: bytes) -> bytes:
        """The candidate's answer to one request, or `T`/`X` with a reason."""
        now = time.monotonic()
        deadline = now + max((self.end - now) / 2, min(self.end - now, SHORTEST_S))
        try:
            if self.candidate is None:
                cpu_s = START_CPU_S + self.plan["test_cpu_s"]
                self.candidate = Child([self.node, f"{HERE}/node_candidate.cjs"], dict(ENVIRONMENT), cpu_s)
            self.candidate.send(frame, deadline)
            answer = self.candidate.receive(deadline)
            if answer[:1] in (b"A", b"C"):
                return answer
            reason = "it broke the protocol"
        except Late:
            self._stop_candidate()
            return b"T" + json.dumps("the candidate was still running when its time was up").encode()
        except (Died, OSError) as error:
            reason = str(error)
        ended = self._stop_candidate()
        if ended == exit_text(SIGXCPU):
            return b"T" + json.dumps("the candidate used up its CPU time").encode()
        return b"X" + json.dumps(f"the candidate's process did not answer: {reason} ({ended})").encode()

    def _to_tests(self, frame: bytes) -> None:
        self.tests.send(frame, self.end + GRACE_S)

    def _stop_candidate(self) -> str:
        child, self.candidate = self.candidate, None
        return exit_text(child.kill()) if child else "not started"

    def _results(self, told: dict[str, Any]) -> dict[str, dict[str, Any]]:
        found = {str(item["id"]): _clean(item) for item in told["results"]}
        for test_id in self.plan["expected"]:
            broken = told["broken"].get(test_id.partition("::")[0])
            if broken is not None:
                found[test_id] = _clean({**broken, "seconds": 0.0})
        return found

    def _all(self, status: str, kind: str, message: str) -> dict[str, dict[str, Any]]:
        result = {"status": status, "kind": kind, "message": message, "seconds": 0.0}
        return {test_id: dict(result) for test_id in self.plan["expected"]}


def _clean(item: dict[str, Any]) -> dict[str, Any]:
    if item["status"] not in STATUSES:
        raise RuntimeError(f"unknown status {item['status']!r}")
    message = str(item["message"])[:MESSAGE_CHARS]
    return {
        "status": item["status"],
        "kind": item["kind"],
        "message": message,
        "seconds": float(item["seconds"]),
    }


def _node() -> str:
    for folder in ENVIRONMENT["PATH"].split(":"):
        path = f"{folder}/node"
        if os.access(path, os.X_OK):
            return path
    raise FileNotFoundError("node is not installed in this sandbox")


def main() -> int:
    """Read the plan, run it, report."""
    channel = PrivateChannel()
    plan = codec.decode(channel.read())
    nonce = plan.pop("nonce")
    found = Supervisor(plan).run()
    absent = {"status": "missing", "kind": "", "message": "the test did not run", "seconds": 0.0}
    order = [*plan["expected"], *(test_id for test_id in found if test_id not in plan["expected"])]
    tests = [{"id": test_id, **found.get(test_id, absent)} for test_id in order]
    report = {"nonce": nonce, "tests": tests, "missing": missing_artifacts(plan["artifacts"])}
    channel.write(codec.encode(report, limit=4 * codec.MAX_BYTES))
    return 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)
