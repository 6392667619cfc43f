"""Checks a run document against what exists, and pins every reference in it.

After this the document names the task set by id and the policy by version: what `newest` meant is decided
once, when the run is accepted, and stays readable in the run.
"""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from sandpiper.runs import PolicySource, RunDocument
from sandpiper.store import policies
from sandpiper.store.db.models import PolicyVersion, Run, TaskSet
from services.api.problems import FieldError, ProblemError
from services.api.reads import runs, tasksets
from services.api.services import Services


async def admit(services: Services, document: RunDocument) -> RunDocument:
    """The pinned document. Raises a 422 problem that names the field which refers to nothing."""
    async with services.sessions() as session:
        task_set = await _task_set(session, document)
        policy = await _policy(session, document.policy)
    tasks = document.tasks.model_copy(update={"task_set": task_set.id})
    return document.model_copy(update={"tasks": tasks, "policy": policy})


async def hold_policy(services: Services, policy: PolicySource, run_id: str) -> None:
    """Keep the version that run `run_id` will act with. Raises a 422 problem when it is gone already."""
    if policy.kind != "run" or policy.run_id is None or policy.version is None:
        return
    # Pinned before the look, so that retention cannot take it in between.
    await policies.pin(services.objects, policy.run_id, policy.version, run_id)
    if not await services.objects.exists(policies.manifest_key(policy.run_id, policy.version)):
        await policies.unpin(services.objects, run_id)
        message = f"version {policy.version} of run {policy.run_id} was published but is no longer kept"
        raise _refused("policy.version", message)


async def _task_set(session: AsyncSession, document: RunDocument) -> TaskSet:
    selection = document.tasks
    try:
        task_set = await tasksets.resolve(session, selection.task_set)
    except ProblemError as error:
        raise _refused("tasks.task_set", error.detail) from None
    if unknown := await tasksets.unknown_ids(session, task_set.id, selection.ids):
        raise _refused("tasks.ids", f"{task_set.name} has no task {', '.join(unknown[:5])}")
    if not await tasksets.selection_size(session, task_set.id, selection):
        raise _refused("tasks", f"selects no task of {task_set.name}@{task_set.version}")
    return task_set


async def _policy(session: AsyncSession, policy: PolicySource) -> PolicySource:
    """The policy with its version; what is not of another run is left as it is."""
    if policy.kind != "run":
        return policy
    run = await session.get(Run, policy.run_id)
    if run is None:
        raise _refused("policy.run_id", f"there is no run {policy.run_id}")
    published = select(PolicyVersion).where(PolicyVersion.run_id == runs.policy_owner(run))
    if policy.version is not None:
        published = published.where(PolicyVersion.version == policy.version)
    found = await session.scalar(published.order_by(PolicyVersion.version.desc()).limit(1))
    if found is None:
        what = "no version yet" if policy.version is None else f"no version {policy.version}"
        raise _refused("policy.version", f"run {policy.run_id} has published {what}")
    pinned = {"run_id": found.run_id, "version": found.version}
    return policy.model_copy(update=pinned)


def _refused(field: str, message: str) -> ProblemError:
    return ProblemError(422, "invalid-run", f"{field}: {message}", [FieldError(message=message, field=field)])
