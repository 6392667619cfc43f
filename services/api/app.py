"""The FastAPI app: routes, failures, middleware. Everything it works with comes in as `Services`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute

from services.api import failures, middleware
from services.api.routes import episodes, events, operations, policies, runs, tasksets
from services.api.routes.documented import ALWAYS, openapi, problems
from services.api.services import Services

VERSION = "0.1.0"
DESCRIPTION = "Submit task sets, start and watch runs, read episodes, fetch policies."
ROUTERS = (tasksets.router, runs.router, events.router, episodes.router, policies.router, operations.router)


def create_app(services: Services) -> FastAPI:
    """An app over `services`; it starts and stops nothing."""
    app = FastAPI(
        title="Sandpiper",
        version=VERSION,
        description=DESCRIPTION,
        generate_unique_id_function=_operation_id,
        docs_url=None,  # both viewers load from elsewhere
        redoc_url=None,
    )
    app.state.services = services
    app.include_router(operations.open_router)
    for router in ROUTERS:
        app.include_router(router, responses=problems(*ALWAYS))
    failures.install(app)
    if services.keys.open:
        app.add_middleware(middleware.LocalOnly, hosts=services.settings.hosts)
    app.add_middleware(middleware.Guard)
    document: Callable[[], dict[str, Any]] = lambda: openapi(app)  # noqa: E731
    app.openapi = document  # type: ignore[method-assign]
    return app


def _operation_id(route: APIRoute) -> str:
    return route.name
