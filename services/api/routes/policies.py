"""Policy versions: lists, manifests, files."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from sqlalchemy import select

from sandpiper.store.blobs import blob_from_json
from sandpiper.store.db.models import PolicyVersion
from sandpiper.store.policies import PolicyManifest, load_manifest
from services.api.auth import Caller
from services.api.downloads import send_blob
from services.api.paging import Page, fetch_page, scope_of
from services.api.problems import not_found
from services.api.reads import runs
from services.api.routes.documented import UNCHANGED, problems
from services.api.schemas.common import IDENT, Cursor, Limit, Number, RunId
from services.api.schemas.runs import FileView, ManifestView, PolicyView
from services.api.services import Services, Using

router = APIRouter(prefix="/v1", tags=["policies"])

FileName = Annotated[str, Path(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,254}$")]
BINARY: dict[str, Any] = {
    "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
}


@router.get("/policies", responses=problems(404))
async def list_policies(
    services: Using,
    _: Caller,
    run: Annotated[str, Query(pattern=IDENT, description="Run id.")],
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Page[PolicyView]:
    """Versions that the run (or the run that it acts with) has published, oldest first."""
    async with services.sessions() as session:
        owner = runs.policy_owner(await runs.get(session, run))
        rows, following = await fetch_page(
            session,
            select(PolicyVersion).where(PolicyVersion.run_id == owner),
            (PolicyVersion.version,),
            (int,),
            scope=scope_of(of="policies", run=owner),
            cursor=cursor,
            limit=limit,
            descending=False,
        )
    return Page(items=[PolicyView.model_validate(row) for row in rows], next_cursor=following)


@router.get("/runs/{run_id}/policies/{version}", responses=problems(404, 410, 502))
async def show_policy(run_id: RunId, version: Number, services: Using, _: Caller) -> ManifestView:
    """What a version is made of; 410 when its files are no longer kept."""
    manifest = await _manifest(services, run_id, version)
    base = f"/v1/runs/{run_id}/policies/{version}/files"
    files = {
        name: FileView(sha256=file.sha256, bytes=file.bytes, href=f"{base}/{name}")
        for name, file in manifest.files.items()
    }
    fields = manifest.model_dump(include=set(ManifestView.model_fields) - {"files"})
    return ManifestView(**fields, files=files)


@router.get(
    "/runs/{run_id}/policies/{version}/files/{name}",
    response_class=Response,
    responses={200: BINARY, **UNCHANGED, **problems(404, 410, 502)},
)
async def download_file(
    request: Request, run_id: RunId, version: Number, name: FileName, services: Using, _: Caller
) -> Response:
    """One file of a version. Its ETag is its SHA-256."""
    manifest = await _manifest(services, run_id, version)
    file = manifest.files.get(name)
    if file is None:
        raise not_found(f"file of version {version}", name)
    return await send_blob(request, services, file.model_dump(), name, "application/octet-stream")


async def _manifest(services: Services, run_id: str, version: int) -> PolicyManifest:
    async with services.sessions() as session:
        owner = runs.policy_owner(await runs.get(session, run_id))
        row = await session.get(PolicyVersion, (owner, version))
    if row is None:
        raise not_found(f"policy of run {run_id}", f"version {version}")
    return await load_manifest(services.objects, blob_from_json(row.manifest))
