"""From stored turns to training sequences."""

from __future__ import annotations

import pytest

from sandpiper.v1.inference_pb2 import TurnTokens
from services.learner.training.sequences import BadTrajectory, assemble


def two_turns() -> list[TurnTokens]:
    """Prompt 1 2, output 3 4, observation 5, output 6."""
    first = TurnTokens(prompt_ids=[1, 2], output_ids=[3, 4], logprobs=[-1, -2], versions=[0, 0])
    second = TurnTokens(
        prompt_ids=[1, 2, 3, 4, 5],
        output_ids=[6],
        logprobs=[-3],
        versions=[1],
        turn_starts=[2],
        turn_ends=[4],
    )
    return [first, second]


def test_only_outputs_are_targets() -> None:
    found = assemble("e", "run", two_turns())
    assert found.ids.tolist() == [1, 2, 3, 4, 5, 6]
    assert found.targets.tolist() == [2, 3, 5]
    assert found.behaviour.tolist() == [-1, -2, -3]
    assert found.versions.tolist() == [0, 0, 1]


def test_a_turn_may_be_empty() -> None:
    turn = TurnTokens(prompt_ids=[1, 2])
    assert assemble("e", "run", [turn]).targets.tolist() == []


def _change(**fields: object) -> list[TurnTokens]:
    turns = two_turns()
    for name, value in fields.items():
        turn, field = turns[int(name[-1])], name[:-1]
        turn.ClearField(field)  # type: ignore[arg-type]
        if isinstance(value, str):
            setattr(turn, field, value)
        else:
            getattr(turn, field).extend(value)
    return turns


@pytest.mark.parametrize(
    ("turns", "why"),
    [
        ([], "no turns"),
        (two_turns()[1:], "knows of 2"),
        (_change(output_ids0=[3, 9]), "not those that the turn produced"),
        (_change(prompt_ids0=[1, 9]), "not the prefix"),
        (_change(logprobs1=[]), "differ in number"),
        (_change(versions1=[1, 1]), "differ in number"),
        (_change(logprobs1=[float("nan")]), "finite"),
        (_change(logprobs1=[float("-inf")]), "finite"),
        (_change(logprobs1=[0.5]), "not positive"),
        (_change(turn_starts1=[4], turn_ends1=[2]), "overlaps"),
        (_change(turn_starts1=[3], turn_ends1=[4]), "not those that the turn produced"),
        (_change(policy_run_id1="other"), "not of this run"),
    ],
)
def test_contradictions_are_refused(turns: list[TurnTokens], why: str) -> None:
    with pytest.raises(BadTrajectory, match=why):
        assemble("e", "run", turns)


def test_the_first_token_cannot_be_a_target() -> None:
    with pytest.raises(BadTrajectory, match="overlaps"):
        assemble("e", "run", [TurnTokens(output_ids=[1], logprobs=[-1], versions=[0])])
