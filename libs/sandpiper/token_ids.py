"""Sequences of token ids as arrays. Needs numpy: for services that have it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]


def common_prefix(a: Ids, b: Ids) -> int:
    """Length of the longest common prefix."""
    length = min(len(a), len(b))
    differs = np.nonzero(a[:length] != b[:length])[0]
    return int(differs[0]) if len(differs) else length
