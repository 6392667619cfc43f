from __future__ import annotations

from sandpiper.store.blobs import blob_from_json, blob_to_json
from sandpiper.v1.common_pb2 import Blob


def test_round_trip() -> None:
    blob = Blob(uri="s3://sandpiper/a", sha256="ab", bytes=7)
    assert blob_to_json(blob) == {"uri": "s3://sandpiper/a", "sha256": "ab", "bytes": 7}
    assert blob_from_json(blob_to_json(blob)) == blob


def test_nothing_stays_nothing() -> None:
    assert blob_to_json(Blob()) == {}
    assert blob_from_json(None) == Blob()
    assert blob_from_json({}) == Blob()
