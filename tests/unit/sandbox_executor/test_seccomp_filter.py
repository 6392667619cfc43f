"""The filter, run by a small interpreter of classic BPF."""

from __future__ import annotations

import errno
import struct

import pytest

from services.sandbox_executor.backend.bubblewrap import seccomp

ALLOW = 0x7FFF0000
KILL = 0x80000000


def run(program: bytes, audit: int, number: int, *arguments: int) -> int:
    """The filter's verdict on one system call."""
    padded = [argument & (2**64 - 1) for argument in (*arguments, *[0] * 6)][:6]
    data = struct.pack("=IIQ6Q", number, audit, 0, *padded)
    steps = [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]
    at = value = 0
    while True:
        code, yes, no, k = steps[at]
        at += 1
        if code == 0x06:
            return int(k)
        if code == 0x20:
            value = struct.unpack_from("=I", data, k)[0]
            continue
        taken = {0x15: value == k, 0x35: value >= k, 0x45: bool(value & k)}[code]
        at += yes if taken else no


def refused(number: int) -> int:
    return 0x00050000 | number


@pytest.fixture(params=sorted(seccomp.MACHINES))
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def verdict(machine: str, name: str, *arguments: int, memory_files: bool = True) -> int:
    program = seccomp.filter_program(machine, memory_files=memory_files)
    assert program is not None
    chosen = seccomp.MACHINES[machine]
    return run(program, chosen.audit, chosen.numbers[name], *arguments)


def test_both_tables_name_the_same_calls() -> None:
    tables = [set(machine.numbers) for machine in seccomp.MACHINES.values()]
    assert tables[0] == tables[1]


def test_no_number_is_used_twice() -> None:
    for machine in seccomp.MACHINES.values():
        assert len(set(machine.numbers.values())) == len(machine.numbers)


@pytest.mark.parametrize("name", sorted(seccomp.DENIED))
def test_denied(machine: str, name: str) -> None:
    assert verdict(machine, name) == refused(errno.EPERM)


@pytest.mark.parametrize("name", sorted(seccomp.NO_SYSTEM_CALL))
def test_not_there(machine: str, name: str) -> None:
    assert verdict(machine, name) == refused(errno.ENOSYS)


@pytest.mark.parametrize("name", sorted(seccomp.NOT_AT_SUPERVISOR))
def test_only_pid_1_is_out_of_reach(machine: str, name: str) -> None:
    assert verdict(machine, name, 1) == refused(errno.EPERM)
    assert verdict(machine, name, 0) == verdict(machine, name, 2) == ALLOW


def test_limits_of_others_are_out_of_reach(machine: str) -> None:
    assert verdict(machine, "prlimit64", 0) == ALLOW
    assert verdict(machine, "prlimit64", 1) == verdict(machine, "prlimit64", 7) == refused(errno.EPERM)


def test_priorities(machine: str) -> None:
    for name, user in (("setpriority", 2), ("ioprio_set", 3)):
        assert verdict(machine, name, user, 0) == refused(errno.EPERM)
        assert verdict(machine, name, user - 2, 1) == refused(errno.EPERM)
        assert verdict(machine, name, user - 2, 0) == verdict(machine, name, user - 2, 5) == ALLOW


def test_threads_yes_namespaces_no(machine: str) -> None:
    thread, new_user, new_net = 0x003D0F00, 0x10000011, 0x40000011
    assert verdict(machine, "clone", thread) == verdict(machine, "clone", 17) == ALLOW
    assert verdict(machine, "clone", new_user) == verdict(machine, "clone", new_net) == refused(errno.EPERM)


@pytest.mark.parametrize(
    ("family", "allowed"),
    [(1, True), (2, True), (10, True), (16, True), (40, False), (17, False), (38, False)],
)
def test_socket_families(machine: str, family: int, allowed: bool) -> None:
    assert verdict(machine, "socket", family) == (ALLOW if allowed else refused(errno.EAFNOSUPPORT))


def test_memory_files_only_where_they_are_counted(machine: str) -> None:
    assert verdict(machine, "memfd_create") == ALLOW
    assert verdict(machine, "memfd_create", memory_files=False) == refused(errno.ENOSYS)


def test_other_ways_to_call() -> None:
    program = seccomp.filter_program("x86_64")
    assert program is not None
    chosen = seccomp.MACHINES["x86_64"]
    assert run(program, chosen.audit, 0) == run(program, chosen.audit, 59) == ALLOW
    assert run(program, chosen.audit, 0x40000000 + 59) == refused(errno.ENOSYS)
    assert run(program, 0x40000003, 11) == KILL


def test_no_table_no_filter() -> None:
    assert seccomp.filter_program("riscv64") is None
