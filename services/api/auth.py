"""Who is calling: a bearer key, or `local` where keys are off."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from services.api.problems import ProblemError
from services.api.services import Services, services_of

_bearer = HTTPBearer(auto_error=False, description="An API key; not needed where keys are off.")


def authenticate(
    request: Request,
    services: Annotated[Services, Depends(services_of)],
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
) -> str:
    """The caller's name. 401 without a key or with an unknown one."""
    caller = services.keys.caller(credentials.credentials if credentials else None)
    if caller is None:
        what = "unknown API key" if credentials else "an API key is required (Authorization: Bearer …)"
        raise ProblemError(401, "unauthorized", what, headers={"WWW-Authenticate": "Bearer"})
    request.scope.setdefault("state", {})["caller"] = caller
    return caller


Caller = Annotated[str, Depends(authenticate)]
