"""Import hooks of the trusted side: candidate modules are proxies, the task's helpers come from memory."""

from __future__ import annotations

import io
import sys

from sandpiper.runners.remote import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

if TYPE_CHECKING:
    from types import ModuleType
else:
    ModuleType = type(sys)  # `types` costs a millisecond to import
ModuleSpec: Any = type(sys.__spec__)


class Finder:
    """Finds candidate modules and their packages, and helper modules among the hidden files."""

    def __init__(self, session: Session, modules: dict[str, str], files: dict[str, str]) -> None:
        self._session, self._modules, self._files = session, modules, files
        self._packages = {name[:index] for name in modules for index, char in enumerate(name) if char == "."}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """As the import system asks."""
        if name in self._modules or name in self._packages:
            return ModuleSpec(name, self, is_package=name in self._packages)
        for file in (f"{name.replace('.', '/')}.py", f"{name.replace('.', '/')}/__init__.py"):
            if file in self._files:
                return ModuleSpec(name, self, origin=file, is_package=file.endswith("__init__.py"))
        return None

    def create_module(self, spec: Any) -> Any:
        """A proxy for a candidate module, a plain module for a helper."""
        if spec.name in self._modules or spec.name in self._packages:
            return CandidateModule(spec.name, self._session)
        return ModuleType(spec.name)

    def exec_module(self, module: Any) -> None:
        """Import in the candidate, or run a helper's source here."""
        origin = module.__spec__.origin
        if origin is not None:
            exec(compile(self._files[origin], origin, "exec"), module.__dict__)
        elif module.__name__ in self._modules:
            module.__dict__["__all__"] = self._session.load(module.__name__)


class CandidateModule(ModuleType):
    """Names are looked up in the candidate at every use."""

    def __init__(self, name: str, session: Session) -> None:
        super().__init__(name)
        self.__dict__["_session"] = session

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.__dict__["_session"].request("get", target=[self.__name__, ""], name=name)


def overlay_open(files: dict[str, str]) -> Callable[..., Any]:
    """`open` that finds the task's hidden data files in memory, so that they never lie in the workspace."""

    def opened(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        text = files.get(str(file).removeprefix("./")) if isinstance(file, str) else None
        if text is None:
            return open(file, mode, *args, **kwargs)
        return io.BytesIO(text.encode()) if "b" in mode else io.StringIO(text)

    return opened
