"""Fork, limit, exec. The child waits at a gate until the host has put it into its control group."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os
import resource

from .wire import write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

RESULT_FD = 3
_HIGH = 64
_PR_SET_DUMPABLE = 4


def prctl(option: int, value: int) -> int:
    """prctl(2) without the cost of importing ctypes."""
    import _ctypes  # noqa: PLC0415

    function = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # type: ignore[arg-type]
    result: int = _ctypes.call_cdeclfunction(function, (option, value, 0, 0, 0))
    return result


def harden() -> None:
    """Nothing in the namespace may trace us, read our memory or take our descriptors, though the uid is the
    same.
    """
    prctl(_PR_SET_DUMPABLE, 0)
    if os.stat("/proc/self/environ").st_uid == os.getuid():
        raise RuntimeError("the supervisor is still dumpable")


def readable(data: bytes) -> int:
    """A descriptor that reads `data`, then ends."""
    if not data:
        return os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
    fd = os.open("/tmp", os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC)
    write_all(fd, data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def start(request: dict[str, Any], descriptors: dict[int, int]) -> tuple[int, int]:
    """Fork the program; `descriptors` maps its numbers to ours. Its pid, and the gate: a byte lets it run."""
    gate_read, gate = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        _become(request, descriptors, gate_read)
    os.close(gate_read)
    return pid, gate


def _become(request: dict[str, Any], descriptors: dict[int, int], gate: int) -> NoReturn:
    try:
        os.setsid()
        _sacrifice_first()
        high = {number: _lift(fd) for number, fd in descriptors.items()}
        gate = _lift(gate)
        for number, fd in high.items():
            os.dup2(fd, number, inheritable=True)
        _limit(request)
        for number in (_signal.SIGCHLD, _signal.SIGINT, _signal.SIGPIPE, _signal.SIGXFSZ):
            _signal.signal(number, _signal.SIG_DFL)
        os.umask(0o022)
        os.chdir("/workspace")
        if os.read(gate, 1):
            _exec(request)
    finally:
        os._exit(127)


def _sacrifice_first() -> None:
    """Let the kernel's memory killer choose the program, never the supervisor."""
    prctl(_PR_SET_DUMPABLE, 1)  # of this child alone; without it its own /proc files are closed to it
    with open("/proc/self/oom_score_adj", "wb", buffering=0) as target:
        target.write(b"1000")


def _lift(fd: int) -> int:
    import fcntl  # noqa: PLC0415  (loaded before the first fork, see main)

    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH)


def _limit(request: dict[str, Any]) -> None:
    limits = request["rlimits"]
    for name, value in limits.items():
        number = getattr(resource, f"RLIMIT_{name}", None)
        if number is None:
            continue
        soft, hard = (value, value + 1) if name == "CPU" else (value, value)
        _, most = resource.getrlimit(number)
        if most != resource.RLIM_INFINITY:
            soft, hard = min(soft, most), min(hard, most)
        resource.setrlimit(number, (soft, hard))


def _exec(request: dict[str, Any]) -> NoReturn:
    argv = request["argv"]
    env = {key.encode("utf-8", "surrogateescape"): value for key, value in request["env"].items()}
    reason = b"not found"
    for path in _candidates(argv[0], env.get(b"PATH", b"")):
        try:
            os.execve(path, argv, env)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            reason = os.strerror(error.errno or 0).encode()
    os.write(2, b"sandpiper: %s: %s\n" % (argv[0][:200], reason))
    os._exit(127 if reason == b"not found" else 126)


def _candidates(name: bytes, path: bytes) -> list[bytes]:
    if b"/" in name:
        return [name]
    return [folder + b"/" + name for folder in path.split(b":") if folder]
