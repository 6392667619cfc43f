"""The newest version of every run, from `policy.published` and from the requests themselves.

Invariant: a run's newest version never goes back; of two manifests for one version the later one counts,
because a learner that resumed from a checkpoint publishes that version again.
"""

from __future__ import annotations

from dataclasses import dataclass

from sandpiper.v1.common_pb2 import Blob, PolicyRef


@dataclass(frozen=True)
class Published:
    """One version of a run's policy and where its manifest lies."""

    run_id: str
    version: int
    uri: str
    sha256: str
    bytes: int

    @classmethod
    def of(cls, run_id: str, version: int, manifest: Blob) -> Published:
        """From the parts of a message."""
        return cls(run_id, version, manifest.uri, manifest.sha256, manifest.bytes)

    def blob(self) -> Blob:
        """The manifest's claim check."""
        return Blob(uri=self.uri, sha256=self.sha256, bytes=self.bytes)

    def __str__(self) -> str:
        return f"{self.run_id}/{self.version}"


class Registry:
    """In memory; filled again from the compacted topic when the service starts."""

    def __init__(self) -> None:
        self._newest: dict[str, Published] = {}

    def announce(self, published: Published) -> bool:
        """Take note of a version; True when it is the run's newest now and was not before."""
        known = self._newest.get(published.run_id)
        if known is not None and (published.version < known.version or published == known):
            return False
        self._newest[published.run_id] = published
        return True

    def newest(self, run_id: str) -> Published | None:
        """The newest version known."""
        return self._newest.get(run_id)

    def learn_from(self, ref: PolicyRef) -> None:
        """A request may know a version whose announcement has not arrived; it never replaces a manifest."""
        known = self._newest.get(ref.run_id)
        if not ref.pinned and ref.manifest.uri and (known is None or ref.version > known.version):
            self.announce(Published.of(ref.run_id, ref.version, ref.manifest))
