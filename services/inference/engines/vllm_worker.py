"""What our service adds to vLLM's worker process: complete reloads, and an end when the service ends.

* vLLM ends its engine and worker processes when it is shut down, but not when the process that started them
  is killed; they would stay behind with all their memory. The watch begins when the worker imports this
  module, before it loads anything: a service that is killed while vLLM starts leaves nothing either.
* On CPUs vLLM multiplies with packed copies of its weights. `reload_weights` packs again whatever the
  checkpoint holds, but an output head that is tied to the embeddings is in no checkpoint, and would go on
  multiplying with the old ones (vLLM 0.32).
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import select
import signal
import threading
from typing import Any

OWNER = "SANDPIPER_VLLM_OWNER"
"""Variable that names the process whose end ends the engine. Only vLLM's processes see it with effect."""


class WorkerExtension:
    """Mixed into vLLM's worker class by name (`worker_extension_cls`); called through `collective_rpc`."""

    def load_policy(self: Any, folder: str) -> None:
        """`reload_weights`, then the heads that it forgets."""
        from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead  # noqa: PLC0415

        self.reload_weights(weights_path=folder)
        for module in self.get_model().modules():
            if isinstance(module, ParallelLMHead):
                module.quant_method.process_weights_after_loading(module)


def _end_with(owner: int, engine: int) -> None:
    """Wait for the end of process `owner`, then end the engine process and this one."""
    with contextlib.suppress(ProcessLookupError):
        poll = select.poll()
        poll.register(os.pidfd_open(owner), select.POLLIN)
        poll.poll()
    if os.getppid() == engine:
        os.kill(engine, signal.SIGKILL)
    os._exit(1)


# An import is the only hook that vLLM calls this early; the variable is set for its processes alone.
if OWNER in os.environ and multiprocessing.parent_process() is not None:
    threading.Thread(
        target=_end_with, args=(int(os.environ[OWNER]), os.getppid()), daemon=True, name="owner-watch"
    ).start()
