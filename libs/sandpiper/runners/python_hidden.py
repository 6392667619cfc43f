"""Runs hidden tests: the trusted side, which holds tests and results, never runs the candidate's code.

    python3 -I -S -B python_hidden.py       (working directory: the workspace; SANDPIPER_RESULT_FD=<n>)

The plan arrives on the private descriptor and the report leaves there (both by `codec`); test files exist
only in this process's memory. Modules of the candidate are proxies (`remote`) to a separate process
(`candidate`). Every expected test that did not report is failed. Exit status: 0 a report was written,
whatever it says; anything else: this runner broke.
"""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from sandpiper.runners import codec, grading
from sandpiper.runners.private import PrivateChannel


def main() -> int:
    """Read the plan, run it, report."""
    channel = PrivateChannel()
    plan = codec.decode(channel.read())
    channel.write(codec.encode(grading.run(plan), limit=4 * codec.MAX_BYTES))
    return 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)
