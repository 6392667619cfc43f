"""Runs one command as a child that cannot outlive its parent. Standard library only; run with `python -I -S`.

It asks the kernel for a signal at the parent's death, gives up root for programs that refuse it, and becomes
the command. Root is given up in a user namespace (root's files stay readable) or, where the kernel forbids
those, by switching to another user.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import pwd
import sys

PR_SET_PDEATHSIG = 1
CLONE_NEWUSER = 0x10000000
NOBODY = 65534


def _enter_user_namespace(libc: ctypes.CDLL) -> bool:
    uid, gid = os.geteuid(), os.getegid()
    if libc.unshare(CLONE_NEWUSER) != 0:
        return False
    for name, line in (
        ("setgroups", "deny"),
        ("uid_map", f"{NOBODY} {uid} 1"),
        ("gid_map", f"{NOBODY} {gid} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(line)
    return True


def _give_up_root(libc: ctypes.CDLL, fallback_user: str, needs: list[str]) -> None:
    if os.geteuid() != 0 or _enter_user_namespace(libc):
        return
    user = pwd.getpwnam(fallback_user)
    for path in needs:
        os.chown(path, user.pw_uid, user.pw_gid)
    os.setgroups([])
    os.setgid(user.pw_gid)
    os.setuid(user.pw_uid)
    for path in needs:
        if not os.access(path, os.R_OK):
            sys.exit(
                f"user {fallback_user} cannot reach {path}: choose a data folder that all may enter (such as "
                "/var/lib/sandpiper), run as another user than root, or allow user namespaces"
            )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--death-signal", type=int, required=True)
    parser.add_argument(
        "--not-root", metavar="USER", help="give up root; USER where user namespaces are forbidden"
    )
    parser.add_argument(
        "--needs", action="append", default=[], metavar="PATH", help="what USER must own and reach"
    )
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    libc = ctypes.CDLL(None, use_errno=True)
    if arguments.not_root:
        _give_up_root(libc, arguments.not_root, arguments.needs)
    # After the change of credentials, which clears it.
    if libc.prctl(PR_SET_PDEATHSIG, arguments.death_signal, 0, 0, 0) != 0:
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != arguments.parent:
        sys.exit("the parent is gone")
    os.execvp(arguments.command[0], arguments.command)


if __name__ == "__main__":
    main()
