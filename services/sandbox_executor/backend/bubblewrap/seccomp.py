"""The system call filter of a sandbox, as classic BPF.

Refused with EPERM: what changes mounts or namespaces, loads code into the kernel, traces other processes,
reaches keyrings; with ENOSYS what has a fallback (clone3, io_uring, System V IPC, whose objects outlive their
processes). Calls that take a process id are refused when they aim at pid 1, the supervisor; prlimit at any
other process. Sockets: local, IPv4, IPv6 and netlink only, since vsock reaches the host around the network
namespace.
"""

from __future__ import annotations

import errno
import platform
import struct
from dataclasses import dataclass

_LD, _JEQ, _JGE, _JSET, _RET = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NR, _ARCH, _ARG0, _ARG1 = 0, 4, 16, 24
_NEW_NAMESPACES = 0x7E020000
_FAMILIES = (1, 2, 10, 16)

DENIED = {
    "acct": 163, "add_key": 248, "bpf": 321, "chroot": 161, "delete_module": 176, "finit_module": 313,
    "fsconfig": 431, "fsmount": 432, "fsopen": 430, "fspick": 433, "init_module": 175, "kexec_file_load": 320,
    "kexec_load": 246, "keyctl": 250, "mount": 165, "mount_setattr": 442, "move_mount": 429,
    "name_to_handle_at": 303, "open_by_handle_at": 304, "open_tree": 428, "perf_event_open": 298,
    "pivot_root": 155, "process_vm_readv": 310, "process_vm_writev": 311, "ptrace": 101, "quotactl": 179,
    "reboot": 169, "request_key": 249, "setns": 308, "swapon": 167, "swapoff": 168, "syslog": 103,
    "umount2": 166,
    "unshare": 272, "userfaultfd": 323, "fanotify_init": 300, "lookup_dcookie": 212, "vhangup": 153,
    "pidfd_getfd": 438, "kcmp": 312, "settimeofday": 164, "clock_settime": 227, "adjtimex": 159,
}  # fmt: skip
NO_SYSTEM_CALL = {
    "clone3": 435, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
    "shmget": 29, "semget": 64, "msgget": 68,
}  # fmt: skip
NOT_AT_SUPERVISOR = {
    "sched_setaffinity": 203, "sched_setparam": 142, "sched_setscheduler": 144,
    "sched_setattr": 314, "migrate_pages": 256, "move_pages": 279,
}  # fmt: skip
OTHERS = {"prlimit64": 302, "memfd_create": 319}
PRIORITY_CALLS = {"setpriority": 141, "ioprio_set": 251}
_USER_CLASS = {"setpriority": 2, "ioprio_set": 3}
CLONE, SOCKET = "clone", "socket"
_X86 = {**DENIED, **NO_SYSTEM_CALL, **NOT_AT_SUPERVISOR, **OTHERS, **PRIORITY_CALLS, CLONE: 56, SOCKET: 41}
_ARM = {
    "acct": 89, "add_key": 217, "bpf": 280, "chroot": 51, "delete_module": 106, "finit_module": 273,
    "fsconfig": 431, "fsmount": 432, "fsopen": 430, "fspick": 433, "init_module": 105, "kexec_file_load": 294,
    "kexec_load": 104, "keyctl": 219, "mount": 40, "mount_setattr": 442, "move_mount": 429,
    "name_to_handle_at": 264, "open_by_handle_at": 265, "open_tree": 428, "perf_event_open": 241,
    "pivot_root": 41, "process_vm_readv": 270, "process_vm_writev": 271, "ptrace": 117, "quotactl": 60,
    "reboot": 142, "request_key": 218, "setns": 268, "swapon": 224, "swapoff": 225, "syslog": 116,
    "umount2": 39,
    "unshare": 97, "userfaultfd": 282, "fanotify_init": 262, "lookup_dcookie": 18, "vhangup": 58,
    "pidfd_getfd": 438, "kcmp": 272, "settimeofday": 170, "clock_settime": 112, "adjtimex": 171,
    "clone3": 435, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
    "shmget": 194, "semget": 190, "msgget": 186, "prlimit64": 261, "sched_setaffinity": 122,
    "sched_setparam": 118, "sched_setscheduler": 119, "sched_setattr": 274, "migrate_pages": 238,
    "move_pages": 239, "setpriority": 140, "ioprio_set": 30, "memfd_create": 279, CLONE: 220, SOCKET: 198,
}  # fmt: skip


@dataclass(frozen=True)
class Machine:
    """System call numbers of one architecture, by its audit word."""

    audit: int
    numbers: dict[str, int]


MACHINES = {"x86_64": Machine(0xC000003E, _X86), "aarch64": Machine(0xC00000B7, _ARM)}


def filter_program(machine: str | None = None, *, memory_files: bool = True) -> bytes | None:
    """The filter for this architecture, as bubblewrap's --seccomp wants it; None where there is no table.

    Without `memory_files` memfd_create is refused as well: only a control group can count such files.
    """
    chosen = MACHINES.get(machine or platform.machine())
    if chosen is None:
        return None
    body = [_op(_LD, _ARCH), _op(_JEQ, chosen.audit, 1, 0), _op(_RET, _KILL), _op(_LD, _NR)]
    body += [_op(_JGE, 0x40000000, 0, 1), _refuse(errno.ENOSYS)]  # x32 calls under other numbers
    for name in sorted(DENIED):
        body += [_op(_JEQ, chosen.numbers[name], 0, 1), _refuse(errno.EPERM)]
    for name in sorted(NO_SYSTEM_CALL) + ([] if memory_files else ["memfd_create"]):
        body += [_op(_JEQ, chosen.numbers[name], 0, 1), _refuse(errno.ENOSYS)]
    for name in sorted(NOT_AT_SUPERVISOR):
        body += _when(chosen.numbers[name], [_op(_LD, _ARG0), _op(_JEQ, 1, 0, 1), _refuse(errno.EPERM)])
    body += _when(chosen.numbers["prlimit64"], [_op(_LD, _ARG0), _op(_JEQ, 0, 1, 0), _refuse(errno.EPERM)])
    for name in sorted(PRIORITY_CALLS):
        body += _when(chosen.numbers[name], _priority_rule(_USER_CLASS[name]))
    body += _when(
        chosen.numbers[CLONE], [_op(_LD, _ARG0), _op(_JSET, _NEW_NAMESPACES, 0, 1), _refuse(errno.EPERM)]
    )
    body += _when(chosen.numbers[SOCKET], _family_rule())
    return b"".join([*body, _op(_RET, _ALLOW)])


def _op(code: int, k: int, jump_true: int = 0, jump_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, jump_true, jump_false, k)


def _refuse(number: int) -> bytes:
    return _op(_RET, _ERRNO | number)


def _when(number: int, rule: list[bytes]) -> list[bytes]:
    return [_op(_JEQ, number, 0, len(rule) + 1), *rule, _op(_RET, _ALLOW)]


def _priority_rule(user_class: int) -> list[bytes]:
    """Refuse the class "all processes of a user", and pid 1 in any class."""
    return [
        _op(_LD, _ARG0), _op(_JEQ, user_class, 2, 0),
        _op(_LD, _ARG1), _op(_JEQ, 1, 0, 1), _refuse(errno.EPERM),
    ]  # fmt: skip


def _family_rule() -> list[bytes]:
    jumps = [_op(_JEQ, family, len(_FAMILIES) - index, 0) for index, family in enumerate(_FAMILIES)]
    return [_op(_LD, _ARG0), *jumps, _refuse(errno.EAFNOSUPPORT)]
