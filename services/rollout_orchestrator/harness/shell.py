"""`shell`: each reply's one fenced `bash` block runs in the workspace; the word `submit` in it ends."""

from __future__ import annotations

from sandpiper.v1.sandbox_pb2 import SandboxResult
from services.rollout_orchestrator.taskspec import TaskSpec

from .outcome import describe
from .protocol import Action, Message, Observation
from .text import cut, fenced_blocks

SYSTEM = (
    "You work in a shell. Each reply holds exactly one fenced bash block; it runs in the workspace and you "
    "are shown its output. When the task is done, reply with a bash block that holds only the word submit."
)
ONE_BLOCK = "Reply with exactly one fenced bash block; yours had {count}."


class ShellHarness:
    """See the module's docstring."""

    def opening(self, task: TaskSpec) -> list[Message]:
        names = sorted(set(task.workspace) | set(task.visible.files))
        files = "\n".join(f"- {name}" for name in names)
        user = f"{task.instruction.strip()}\n\nFiles in the workspace:\n{files}"
        return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": user}]

    def parse(self, task: TaskSpec, text: str) -> Action:
        blocks = [
            body
            for word, body in fenced_blocks(task.reply_prefix + text)
            if word in ("", "bash", "sh", "shell")
        ]
        if len(blocks) != 1:
            return Action("invalid", note=ONE_BLOCK.format(count=len(blocks)))
        script = blocks[0].strip()
        if script == "submit":
            return Action("submit")
        return Action("run", argv=("bash", "-c", script))

    def observe(self, task: TaskSpec, result: SandboxResult) -> Observation:
        parts = [describe(result)]
        for name, data in (("stdout", result.stdout), ("stderr", result.stderr)):
            text = data.decode("utf-8", "replace").strip()
            if text:
                parts.append(f"{name}:\n{cut(text, task.limits.observation_chars)}")
        return Observation("\n".join(parts), done=False)
