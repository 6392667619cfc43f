"""The supervisor as a process: `python -m sandpiper.embedded <options as JSON>`; a signal ends it."""

from __future__ import annotations

import sys

from sandpiper.embedded.options import StackOptions
from sandpiper.embedded.run import run

if __name__ == "__main__":
    sys.exit(run(StackOptions.model_validate_json(sys.argv[1])))
