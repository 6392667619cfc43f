"""JavaScript: visible reports, and hidden tests whose candidate lives in a process of its own."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from sandpiper.tasks.plan import ReportError, expected_tests, read_report
from tests.unit.runners.direct import NONCE, by_name, hidden_report, make_task, run_hidden, run_visible

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")

LIMITS = {"wall_s": 90, "cpu_s": 8}
HONEST = """
const { test, describe, it } = require('node:test');
const assert = require('node:assert');
const s = require('./solution.js');
const { add, Stack, Oops, CONST } = s;
const table = require('./table.json');

test('plain data', () => {
  assert.strictEqual(add(1, 2), 3);
  assert.strictEqual(add(1n, 2n ** 70n), 2n ** 70n + 1n);
  assert.deepStrictEqual(CONST.a, [1, undefined, new Map([[1, new Set([2])]])]);
  assert.deepStrictEqual({ ...CONST, a: 0 }, { a: 0, n: NaN, z: -0, d: new Date(5) });
  assert.strictEqual(table.answer, 42);
});
test('errors', () => {
  assert.throws(() => s.broken(), TypeError);
  assert.throws(() => s.own(), Oops);
  assert.throws(() => s.own(), { name: 'Oops', message: 'mine', code: 7 });
});
describe('stack', () => {
  it('works', () => {
    const stack = new Stack();
    stack.push(1);
    stack.push([2]);
    assert.strictEqual(stack.size, 2);
    assert.deepStrictEqual(stack.pop(), [2]);
    assert.deepStrictEqual([...stack], [1]);
    assert.ok(stack instanceof Object);
  });
});
test('async', async () => {
  assert.strictEqual(await s.later(3), 3);
  await assert.rejects(s.later(-1), /negative/);
  assert.strictEqual(await s.later(4).then((x) => x + 1), 5);
});
test('callbacks, generators, closures', () => {
  assert.deepStrictEqual(s.each([1, 2], (x) => x * 2), [2, 4]);
  assert.deepStrictEqual([...s.upTo(3)], [0, 1, 2]);
  const counter = s.counter();
  counter.inc();
  counter.inc();
  assert.strictEqual(counter.value(), 2);
});
test('changed arguments', () => {
  const xs = [3, 1];
  s.sortInPlace(xs);
  assert.deepStrictEqual(xs, [1, 3]);
});
"""
SOLUTION = """
class Oops extends Error {
  constructor(message) { super(message); this.name = 'Oops'; this.code = 7; }
}
class Stack {
  constructor() { this.items = []; }
  push(x) { this.items.push(x); }
  pop() { return this.items.pop(); }
  get size() { return this.items.length; }
  [Symbol.iterator]() { return this.items[Symbol.iterator](); }
}
module.exports = {
  add: (a, b) => a + b,
  broken: () => null.x,
  own: () => { throw new Oops('mine'); },
  Oops, Stack,
  later: async (n) => {
    await new Promise((resolve) => setTimeout(resolve, 2));
    if (n < 0) throw new Error('negative');
    return n;
  },
  each: (xs, f) => xs.map((x) => f(x)),
  upTo: function* (n) { for (let i = 0; i < n; i++) yield i; },
  counter: () => ({ n: 0, inc() { this.n++; }, value() { return this.n; } }),
  sortInPlace: (xs) => { xs.sort(); },
  CONST: { a: [1, undefined, new Map([[1, new Set([2])]])], n: NaN, z: -0, d: new Date(5) },
};
"""


def test_honest_candidates_cannot_tell(tmp_path: Path) -> None:
    files = {"hidden.test.js": HONEST, "table.json": '{"answer": 42}'}
    task = make_task(files, language="javascript", limits=LIMITS)
    report = hidden_report(task, tmp_path, SOLUTION)
    assert [(test.id, test.message) for test in report.tests if test.status != "passed"] == []
    assert [test.id.partition("::")[2] for test in report.tests] == [
        "plain data",
        "errors",
        "stack",
        "async",
        "callbacks, generators, closures",
        "changed arguments",
    ]
    assert report.passed


def test_modules_of_either_kind(tmp_path: Path) -> None:
    tests = (
        "import test from 'node:test';\nimport assert from 'node:assert/strict';\n"
        "import { add, sub as minus } from './solution.js';\n"
        "test('both', () => { assert.equal(add(1, 2), 3); assert.equal(minus(1, 2), -1); });\n"
    )
    task = make_task(tests, language="javascript", limits=LIMITS)
    esm = {"package.json": '{"type": "module"}'}
    common = "exports.add = (a, b) => a + b; exports.sub = (a, b) => a - b;\n"
    assert hidden_report(task, tmp_path, common).passed
    modern = "export const add = (a, b) => a + b;\nexport function sub(a, b) { return a - b; }\n"
    assert hidden_report(task, tmp_path, {"solution.js": modern, **esm}).passed


def test_failures_are_told_apart(tmp_path: Path) -> None:
    tests = (
        "const { test } = require('node:test');\nconst assert = require('node:assert');\n"
        "const { f } = require('./solution.js');\n"
        "test('ok', () => { assert.strictEqual(f(0), 0); });\n"
        "test('wrong', () => { assert.strictEqual(f(0), 1); });\n"
        "test('throws', () => { f(1); });\n"
        "test('exits', () => { try { f(2); } catch (error) { /* swallowed */ } });\n"
        "test('loops', () => { try { f(3); } catch (error) { /* swallowed */ } });\n"
        "test('after', () => { assert.strictEqual(f(0), 0); });\n"
        "test.skip('skipped', () => {});\n"
    )
    solution = (
        "exports.f = (x) => { if (x === 1) throw new RangeError('far'); if (x === 2) process.exit(0);"
        " if (x === 3) for (;;); return x; };\n"
    )
    task = make_task(tests, language="javascript", limits={"wall_s": 90, "cpu_s": 3})
    found = by_name(hidden_report(task, tmp_path, solution))
    assert {name: (test.status, test.kind) for name, test in found.items()} == {
        "ok": ("passed", ""),
        "wrong": ("failed", "assertion"),
        "throws": ("error", "exception"),
        "exits": ("error", "exception"),
        "loops": ("failed", "timeout"),
        "after": ("passed", ""),
        "skipped": ("missing", ""),
    }
    assert found["wrong"].message == "got 0, expected 1 (strictEqual)"
    assert "RangeError: far" in found["throws"].message


@pytest.mark.parametrize(
    ("solution", "kind"),
    [
        ("function f( {", "syntax"),
        ("null.x;", "exception"),
        ("process.exit(0)", "exception"),
        ("process.kill(process.pid, 'SIGKILL')", "exception"),
    ],
)
def test_a_solution_that_does_not_load(tmp_path: Path, solution: str, kind: str) -> None:
    tests = (
        "const { test } = require('node:test');\nconst s = require('./solution.js');\ntest('a', () => {});\n"
    )
    task = make_task(tests, language="javascript", limits=LIMITS)
    report = hidden_report(task, tmp_path, solution)
    assert [(test.status, test.kind) for test in report.tests] == [("error", kind)]


def test_hostile_values_and_globals_pass_nothing(tmp_path: Path) -> None:
    tests = (
        "const { test } = require('node:test');\nconst assert = require('node:assert');\n"
        "const { f } = require('./solution.js');\n"
        "test('strict', () => { assert.strictEqual(f(), 3); });\n"
        "test('loose', () => { assert.ok(f() == 3); });\n"
        "test('close', () => { assert.ok(Math.abs(f() - 3) < 0.1); });\n"
        "test('deep', () => { assert.deepStrictEqual(f(), [1]); });\n"
        "test('includes', () => { assert.ok(f().includes(3)); });\n"
    )
    task = make_task(tests, language="javascript", limits=LIMITS)
    solutions = (
        "exports.f = () => ({ valueOf: () => 3, toString: () => '3', includes: () => true,"
        " [Symbol.toPrimitive]: () => 3 });\n",
        "const assert = require('node:assert'); assert.ok = assert.strictEqual = () => {};\n"
        "assert.deepStrictEqual = () => {};\n"
        "require('node:test').test = () => {}; Math.abs = () => 0; exports.f = () => null;\n",
        "const fs = require('node:fs'); for (let fd = 3; fd < 30; fd++) { try { fs.writeSync(fd, 'D{}'); }"
        " catch (error) {} }\nexports.f = () => null;\n",
    )
    for solution in solutions:
        report = hidden_report(task, tmp_path, solution)
        assert [test.id for test in report.tests if test.status == "passed"] == [], solution


def test_killing_the_runner_leaves_no_report(tmp_path: Path) -> None:
    tests = (
        "const { test } = require('node:test');\nconst s = require('./solution.js');\ntest('a', () => {});\n"
    )
    task = make_task(tests, language="javascript", limits=LIMITS)
    raw = run_hidden(task, tmp_path, "process.kill(process.ppid, 'SIGKILL')")
    assert raw.code == -9
    with pytest.raises(ReportError):
        read_report(raw.channel, NONCE, expected_tests(task.hidden))


VISIBLE = """
const { test, describe, it } = require('node:test');
const assert = require('node:assert');
const { add } = require('./solution.js');
test('adds', () => { assert.strictEqual(add(1, 2), 3); });
describe('group', () => { it('inner', () => { assert.deepStrictEqual(add([1], [2]), '12'); }); });
test('zero', () => { assert.strictEqual(add(0, 0), 0); });
"""


@pytest.mark.parametrize(
    ("solution", "code", "pieces"),
    [
        ("exports.add = (a, b) => a + b;", 0, ["all 3 tests passed"]),
        (
            "exports.add = (a, b) => a - b;",
            1,
            ["2 of 3 tests failed", "adds: got -1, expected 3", "group > inner: got -1, expected '12'"],
        ),
        ("exports.add = (a) => a.b.c;", 1, ["TypeError: Cannot read", "at solution.js line 1"]),
        ("exports.add = (", 1, ["SyntaxError"]),
    ],
)
def test_visible_report(tmp_path: Path, solution: str, code: int, pieces: list[str]) -> None:
    task = make_task(
        "x",
        language="javascript",
        visible={"runner": "node", "files": {"visible.test.js": VISIBLE}},
    )
    raw = run_visible(task, tmp_path, solution)
    assert raw.code == code, raw.output
    assert all(piece in raw.output for piece in pieces), raw.output
    assert len(raw.output) < 600
