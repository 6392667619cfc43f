"""`single-file`: each reply's last fenced block replaces the solution file; visible tests run.

The episode ends when the visible tests pass or the turns are used up.
"""

from __future__ import annotations

from sandpiper.tasks.languages import visible_argv
from sandpiper.v1.sandbox_pb2 import OUTCOME_OK, SandboxResult
from services.rollout_orchestrator.taskspec import TaskSpec

from .outcome import describe
from .protocol import Action, Message, Observation
from .text import cut, fenced_blocks

NO_BLOCK = "Your reply has no fenced code block. Reply with the whole file in one fenced code block."


class SingleFileHarness:
    """See the module's docstring."""

    def opening(self, task: TaskSpec) -> list[Message]:
        stub = task.workspace.get(task.solution_path, "")
        shown = (
            f"\n\n`{task.solution_path}`:\n```{task.language}\n{stub.rstrip()}\n```" if stub.strip() else ""
        )
        system = f"Write the file {task.solution_path}. Reply with one code block."
        return [
            {"role": "system", "content": system},
            {"role": "user", "content": task.instruction.strip() + shown},
        ]

    def parse(self, task: TaskSpec, text: str) -> Action:
        blocks = fenced_blocks(task.reply_prefix + text)
        if not blocks:
            return Action("invalid", note=NO_BLOCK)
        return Action("run", files={task.solution_path: blocks[-1][1]}, argv=visible_argv(task))

    def observe(self, task: TaskSpec, result: SandboxResult) -> Observation:
        if result.outcome == OUTCOME_OK:
            return Observation("All visible tests passed.", done=True)
        report = (result.stdout + result.stderr).decode("utf-8", "replace").strip()
        shown = cut(report, task.limits.observation_chars)
        return Observation(f"{describe(result)}\n{shown}\nReply with the corrected file.", done=False)
