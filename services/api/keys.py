"""API keys: random, shown once, kept only as SHA-256 (their 256 bits of entropy need no slow hash)."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
from collections.abc import Mapping
from pathlib import Path

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
DIGEST = re.compile(r"[0-9a-f]{64}")
ANONYMOUS = "local"
"""The caller's name where no keys are configured, which only loopback may do."""


class BadKeysFile(ValueError):
    """A keys file that cannot be read as one; the message names the line."""


class KeyRing:
    """Names by key digest. Empty: everybody is `local`."""

    def __init__(self, digests: Mapping[str, str]) -> None:
        """`digests`: caller's name -> lower-case hex SHA-256 of the key."""
        for name, digest in digests.items():
            if not NAME.fullmatch(name) or not DIGEST.fullmatch(digest):
                raise BadKeysFile(f"key {name!r}: want a lower-case name and a SHA-256 in hex")
        self._digests = dict(digests)

    @property
    def open(self) -> bool:
        """No keys: no one is asked for one."""
        return not self._digests

    def caller(self, key: str | None) -> str | None:
        """Who holds `key`; None when nobody does. Time does not depend on which key almost matches."""
        if self.open:
            return ANONYMOUS
        digest = hashlib.sha256((key or "").encode("utf-8", "surrogateescape")).hexdigest()
        found = None
        for name, known in self._digests.items():
            if hmac.compare_digest(digest, known):
                found = name
        return found


def read_keys_file(path: Path) -> dict[str, str]:
    """Lines of `<name> <sha256>`; blank lines and `#` comments are skipped."""
    digests: dict[str, str] = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        words = line.split("#", 1)[0].split()
        if not words:
            continue
        if len(words) != 2 or not NAME.fullmatch(words[0]) or not DIGEST.fullmatch(words[1]):
            raise BadKeysFile(f"{path}, line {number}: want `<name> <sha256 in hex>`")
        if words[0] in digests:
            raise BadKeysFile(f"{path}, line {number}: {words[0]!r} is there twice")
        digests[words[0]] = words[1]
    return digests


def is_loopback(host: str) -> bool:
    """Whether binding to `host` keeps everybody else out."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
