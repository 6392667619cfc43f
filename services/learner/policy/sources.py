"""From a run document's policy source to a Hugging Face folder on local disk."""

from __future__ import annotations

import asyncio
from pathlib import Path

from sandpiper.runs import PolicySource
from sandpiper.store import policies
from sandpiper.store.errors import MissingObject
from sandpiper.store.objects import ObjectStore
from services.learner.policy.errors import PolicyUnavailable
from services.learner.policy.starter import starter_folder
from services.learner.policy.tiny import tiny_folder

HUB_FILES = ["*.json", "*.safetensors", "*.txt", "*.model", "*.jinja", "*.tiktoken"]


def name_of(source: PolicySource) -> str:
    """What a manifest calls the base policy."""
    match source.kind:
        case "path":
            return f"path:{source.path}"
        case "hub":
            return f"hub:{source.hub_id}"
        case "run":
            return f"run:{source.run_id}/{'newest' if source.version is None else source.version}"
    return source.kind if source.kind == "starter" else f"tiny:{source.seed}"


class Sources:
    """Finds policies; what is built or downloaded is kept under `cache`."""

    def __init__(self, objects: ObjectStore, cache: Path) -> None:
        self._objects = objects
        self._cache = cache
        self._building = asyncio.Lock()

    async def folder(self, source: PolicySource) -> Path:
        """A folder that transformers loads. Raises PolicyUnavailable, or StoreUnavailable for kind `run`."""
        if source.kind == "run":
            return await self._published(source.run_id or "", source.version)
        async with self._building:
            return await asyncio.to_thread(self._local, source)

    def _local(self, source: PolicySource) -> Path:
        match source.kind:
            case "tiny":
                return tiny_folder(self._cache, source.seed)
            case "path":
                return checked_path(source.path or "")
            case "hub":
                return from_hub(source.hub_id or "", self._cache / "hub")
        return starter_folder(self._cache)

    async def _published(self, run_id: str, version: int | None) -> Path:
        if version is None:
            known = await policies.versions(self._objects, run_id)
            if not known:
                raise PolicyUnavailable("not_found", f"run {run_id} has published no policy")
            version = known[-1]
        uri = self._objects.uri(policies.manifest_key(run_id, version))
        folder = self._cache / f"{run_id}-{version}"
        try:
            await policies.fetch(self._objects, uri, folder)
        except MissingObject as error:
            raise PolicyUnavailable("not_found", f"run {run_id} has no version {version}") from error
        return folder


def checked_path(path: str) -> Path:
    """A local folder with a configuration and safetensors weights. Raises PolicyUnavailable."""
    folder = Path(path).expanduser()
    if not (folder / "config.json").is_file():
        raise PolicyUnavailable("not_found", f"{path}: no config.json there")
    if not any(folder.glob("*.safetensors")):
        raise PolicyUnavailable("invalid", f"{path}: no .safetensors file there")
    return folder


def from_hub(hub_id: str, cache: Path) -> Path:
    """A snapshot of a hub repository. Raises PolicyUnavailable, `unreachable` where there is no way to the
    hub."""
    from huggingface_hub import snapshot_download  # noqa: PLC0415
    from huggingface_hub.errors import (  # noqa: PLC0415
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
    )

    try:
        return checked_path(snapshot_download(hub_id, cache_dir=cache, allow_patterns=HUB_FILES))
    except LocalEntryNotFoundError as error:
        raise PolicyUnavailable("unreachable", f"the model hub cannot be reached for {hub_id}") from error
    except (RepositoryNotFoundError, HFValidationError) as error:
        raise PolicyUnavailable("not_found", f"{hub_id}: {error}"[:300]) from error
    except PolicyUnavailable:
        raise
    except Exception as error:  # the hub client lets errors of several HTTP libraries through
        raise PolicyUnavailable("unreachable", f"{hub_id}: {type(error).__name__}: {error}"[:300]) from error
