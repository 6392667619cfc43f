"""The committed locks agree with what pyproject.toml asks for."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[3]


def locked(name: str) -> dict[str, str]:
    lines = [line for line in (ROOT / name).read_text().splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9.-]+==\S+", line) for line in lines), (
        "plain pins only: no addresses, no options"
    )
    return dict(line.split("==") for line in lines)


def required() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    return [Requirement(line) for lines in [project["dependencies"], *extras] for line in lines]


@pytest.mark.parametrize("requirement", required(), ids=str)
def test_every_requirement_is_locked_at_a_version_that_it_allows(requirement: Requirement) -> None:
    name = canonicalize_name(requirement.name)
    if name in {"torch", "sandpiper"}:
        return
    pins = locked("requirements.lock")
    assert name in pins, "install it and run scripts/lock"
    assert requirement.specifier.contains(pins[name], prereleases=True)


def test_setup_installs_the_torch_that_is_required() -> None:
    wanted = {str(requirement.specifier) for requirement in required() if requirement.name == "torch"}
    version = re.search(r"^TORCH=(\S+)$", (ROOT / "scripts" / "setup").read_text(), re.M)
    assert version is not None
    assert wanted == {f"=={version[1]}"}


def test_the_locks_do_not_contradict_each_other() -> None:
    assert not locked("requirements.lock").keys() & locked("requirements-vllm.lock").keys()
