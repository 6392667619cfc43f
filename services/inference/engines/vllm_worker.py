"""What our service adds to vLLM's worker process: complete reloads, and an end when the service ends.

* vLLM ends its engine and worker processes when it is shut down, but not when the process that started them
  is killed; they would stay behind with all their memory.
* On CPUs vLLM multiplies with packed copies of its weights. `reload_weights` packs again whatever the
  checkpoint holds, but an output head that is tied to the embeddings is in no checkpoint, and would go on
  multiplying with the old ones (vLLM 0.32).
"""

from __future__ import annotations

import os
import select
import signal
import threading
from typing import Any


class WorkerExtension:
    """Mixed into vLLM's worker class by name (`worker_extension_cls`); called through `collective_rpc`."""

    def exit_with(self: Any, pid: int) -> None:
        """End this worker and the engine process above it as soon as process `pid` is gone."""
        handle = os.pidfd_open(pid)
        threading.Thread(target=_wait, args=(handle, os.getppid()), daemon=True, name="parent-watch").start()

    def load_policy(self: Any, folder: str) -> None:
        """`reload_weights`, then the heads that it forgets."""
        from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead  # noqa: PLC0415

        self.reload_weights(weights_path=folder)
        for module in self.get_model().modules():
            if isinstance(module, ParallelLMHead):
                module.quant_method.process_weights_after_loading(module)


def _wait(handle: int, engine_pid: int) -> None:
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    poll.poll()
    if os.getppid() == engine_pid:
        os.kill(engine_pid, signal.SIGKILL)
    os._exit(1)
