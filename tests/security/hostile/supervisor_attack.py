# ruff: noqa: SIM105
# expect: ok
# within: 20
"""Goes for pid 1 by every call that takes a process."""

import ctypes
import os
import resource
import signal

libc = ctypes.CDLL(None, use_errno=True)


def must_fail(what, call):
    try:
        result = call()
    except (OSError, ValueError, AttributeError):
        return
    if result not in (-1, None) or result is None:
        print("ESCAPED:", what, result)


for number in sorted(signal.valid_signals()):
    try:
        os.kill(1, number)
    except OSError:
        pass
buffer = ctypes.create_string_buffer(64)
vector = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 64)
remote = (ctypes.c_void_p * 2)(0x400000, 64)
must_fail("ptrace attach", lambda: libc.ptrace(16, 1, 0, 0))
must_fail("ptrace seize", lambda: libc.ptrace(0x4206, 1, 0, 0))
must_fail("process_vm_readv", lambda: libc.process_vm_readv(1, vector, 1, remote, 1, 0))
must_fail("process_vm_writev", lambda: libc.process_vm_writev(1, vector, 1, remote, 1, 0))
must_fail("pidfd_getfd", lambda: libc.syscall(438, os.pidfd_open(1), 3, 0))
must_fail("prlimit", lambda: resource.prlimit(1, resource.RLIMIT_CPU, (0, 0)))
must_fail("prlimit nofile", lambda: resource.prlimit(1, resource.RLIMIT_NOFILE, (3, 3)))
must_fail("setpriority", lambda: libc.setpriority(0, 1, 19))
must_fail("setpriority of the user", lambda: libc.setpriority(2, 0, 19))
must_fail("affinity", lambda: os.sched_setaffinity(1, {0}))
must_fail("scheduler", lambda: os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0)))
must_fail("ioprio", lambda: libc.syscall(251, 1, 1, 3 << 13))
for mode, names in {
    "rb": ("mem", "fd/3", "fd/4", "fd/5", "environ", "auxv", "syscall"),
    "r+b": (
        "mem",
        "fd/3",
        "fd/4",
        "fd/5",
        "clear_refs",
        "oom_score_adj",
        "coredump_filter",
        "uid_map",
        "comm",
    ),
}.items():
    for name in names:
        try:
            with open(f"/proc/1/{name}", mode, buffering=0) as target:
                print("ESCAPED: opened", name, mode, target.read(1) if mode == "rb" else "")
        except OSError:
            pass
