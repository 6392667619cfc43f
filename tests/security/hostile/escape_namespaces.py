# ruff: noqa: E501
# expect: ok
# within: 20
"""New namespaces, mounts, roots, keyrings, kernel code: by number, so that no library is in the way."""

import ctypes
import platform

libc = ctypes.CDLL(None, use_errno=True)
if platform.machine() == "x86_64":
    calls = {
        "unshare user": (272, 0x10000000), "unshare mount": (272, 0x20000), "unshare net": (272, 0x40000000),
        "mount": (165, b"none", b"/workspace", b"tmpfs", 0, None), "umount": (166, b"/workspace", 2),
        "pivot_root": (155, b"/workspace", b"/workspace"), "chroot": (161, b"/workspace"), "setns": (308, 0, 0),
        "open_tree": (428, -100, b"/", 1), "fsopen": (430, b"tmpfs", 0), "move_mount": (429, 0, b"", 0, b"", 0),
        "mount_setattr": (442, -100, b"/", 0, b"", 0), "keyctl": (250, 0, -3, 0), "add_key": (248, b"user", b"a", b"b", 1, -3),
        "bpf": (321, 0, b"", 0), "perf_event_open": (298, b"", 0, -1, -1, 0), "userfaultfd": (323, 0),
        "io_uring_setup": (425, 1, ctypes.create_string_buffer(120)), "init_module": (175, b"", 0, b""),
        "kexec_load": (246, 0, 0, None, 0), "reboot": (169, 0, 0, 0, None), "syslog": (103, 3, b"", 0),
        "clone user": (56, 0x10000011, 0, 0, 0, 0), "clone3": (435, ctypes.create_string_buffer(88), 88),
        "name_to_handle_at": (303, -100, b"/", b"", None, 0), "swapon": (167, b"x", 0), "sethostname": (170, b"x", 1),
        "clock_settime": (227, 0, ctypes.create_string_buffer(16)), "quotactl": (179, 0, b"", 0, None),
        "x32 getpid": (0x40000000 + 39,),
    }  # fmt: skip
    for name, arguments in calls.items():
        if libc.syscall(*arguments) >= 0:
            print("ESCAPED:", name)
