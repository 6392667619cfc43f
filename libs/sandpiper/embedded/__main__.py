"""The supervisor as a process: `python -m sandpiper.embedded <options as JSON>`; a signal ends it."""

from __future__ import annotations

import os
import sys

from sandpiper.embedded.options import StackOptions
from sandpiper.embedded.run import run

if __name__ == "__main__":
    status = run(StackOptions.model_validate_json(sys.argv[1]))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # all is stopped; whoever waits for us need not wait for the interpreter to unload
