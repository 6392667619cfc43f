"""What our service adds to vLLM's worker process: it does not outlive us.

vLLM ends its engine and worker processes when it is shut down, but not when the process that started them is
killed; they would stay behind with all their memory.
"""

from __future__ import annotations

import os
import select
import signal
import threading
from typing import Any


class ParentWatch:
    """Mixed into vLLM's worker class by name (`worker_extension_cls`); called through `collective_rpc`."""

    def exit_with(self: Any, pid: int) -> None:
        """End this worker and the engine process above it as soon as process `pid` is gone."""
        handle = os.pidfd_open(pid)
        threading.Thread(target=_wait, args=(handle, os.getppid()), daemon=True, name="parent-watch").start()


def _wait(handle: int, engine_pid: int) -> None:
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    poll.poll()
    if os.getppid() == engine_pid:
        os.kill(engine_pid, signal.SIGKILL)
    os._exit(1)
