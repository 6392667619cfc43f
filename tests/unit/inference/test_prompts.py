"""Prompts: chat template, exact prefixes, records of turns."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandpiper.v1.inference_pb2 import TurnTokens
from services.inference.engines.base import Generation
from services.inference.failures import BadRequest, PolicyRefused
from services.inference.prompts.build import Prompt, build_prompt, room
from services.inference.prompts.tokenizer import ChatTokenizer
from services.inference.prompts.tokens import parse_prior, turn_tokens
from tests.unit.inference.tiny_model import CHATML, end_token, make_tiny, save_tokenizer

SYSTEM_FIRST = (
    "{% if messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nBe nice.<|im_end|>\n' }}{% endif %}"
    + CHATML
)
TRIMMING = CHATML.replace("m['content']", "(m['content'] | trim)")
OTHER_END = (
    "{% for m in messages %}{{ '[' + m['role'] + ']' + m['content'] + '<|endoftext|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '[assistant]' }}{% endif %}"
)
DROPPING = "{% for m in messages if m['role'] == 'user' %}{{ m['content'] }}{% endfor %}"
REFUSING = "{{ raise_exception('no') }}"


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> ChatTokenizer:
    return ChatTokenizer(make_tiny(tmp_path_factory.mktemp("prompts")))


def with_template(folder: Path, template: str) -> ChatTokenizer:
    save_tokenizer(folder, template)
    return ChatTokenizer(folder)


def user(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def turn(prompt: Prompt, output: list[int]) -> TurnTokens:
    generation = Generation(output, [-1.0] * len(output), [0] * len(output), "stop")
    return parse_prior(turn_tokens(prompt, generation, "run").SerializeToString())


def test_first_prompt_is_the_template_with_the_prefix(tokenizer: ChatTokenizer) -> None:
    messages = [{"role": "system", "content": "s"}, *user("u")]
    prompt = build_prompt(tokenizer, None, messages, "```python\n")
    assert tokenizer.decode(prompt.ids) == (
        "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\nu<|im_end|>\n<|im_start|>assistant\n```python\n"
    )
    assert prompt.turn_starts == []


def test_end_tokens_come_from_config_tokenizer_and_template(tmp_path: Path) -> None:
    folder = make_tiny(tmp_path)
    assert ChatTokenizer(folder).stop_ids == {end_token(folder)}
    (folder / "generation_config.json").write_text('{"eos_token_id": [5, 6]}')
    assert ChatTokenizer(folder).stop_ids == {end_token(folder), 5, 6}
    other = with_template(tmp_path / "other", OTHER_END)
    assert other.decode(sorted(other.stop_ids)) == "<|endoftext|><|im_end|>"


@pytest.mark.parametrize("template", [CHATML, SYSTEM_FIRST, TRIMMING])
def test_three_turns_render_like_the_whole_conversation(tmp_path: Path, template: str) -> None:
    """Where replies are what the template would have shown, token by token equality with one rendering."""
    tokenizer = with_template(tmp_path, template)
    replies = ["first reply", "second"]
    ended = [tokenizer.encode(reply + "<|im_end|>") for reply in replies]
    one = build_prompt(tokenizer, None, user("task"), "")
    two = build_prompt(tokenizer, turn(one, ended[0]), user("observation 1"), "")
    three = build_prompt(tokenizer, turn(two, ended[1]), user("observation 2"), "")
    conversation = [
        *user("task"),
        {"role": "assistant", "content": replies[0]},
        *user("observation 1"),
        {"role": "assistant", "content": replies[1]},
        *user("observation 2"),
    ]
    assert three.ids == tokenizer.encode(tokenizer.render(conversation))
    cut_out = [three.ids[a:b] for a, b in zip(three.turn_starts, three.turn_ends, strict=True)]
    assert cut_out == ended


@settings(max_examples=100, deadline=None)
@given(
    outputs=st.lists(st.lists(st.integers(0, 258), max_size=12), min_size=1, max_size=4),
    observation=st.text(max_size=20),
    prefix=st.sampled_from(["", "```python\n"]),
)
def test_prompts_extend_the_exact_prefix(
    tokenizer: ChatTokenizer, outputs: list[list[int]], observation: str, prefix: str
) -> None:
    """For any tokens, also such as no text encodes to: specials in the middle, broken UTF-8, none at all."""
    prompt = build_prompt(tokenizer, None, user("task"), prefix)
    for output in outputs:
        before = prompt
        prompt = build_prompt(tokenizer, turn(prompt, output), user(observation), prefix)
        assert prompt.ids[: len(before.ids) + len(output)] == [*before.ids, *output]
    cut_out = [prompt.ids[a:b] for a, b in zip(prompt.turn_starts, prompt.turn_ends, strict=True)]
    assert cut_out == outputs


def test_end_of_turn_stands_exactly_once(tokenizer: ChatTokenizer) -> None:
    one = build_prompt(tokenizer, None, user("t"), "")
    (end,) = tokenizer.stop_ids
    tail = "\n<|im_start|>user\no<|im_end|>\n<|im_start|>assistant\n"
    for output, expected in (([65, end], tail), ([65], "<|im_end|>" + tail), ([], "<|im_end|>" + tail)):
        two = build_prompt(tokenizer, turn(one, output), user("o"), "")
        assert tokenizer.decode(two.ids[two.turn_ends[0] :]) == expected


def test_a_template_that_hides_replies_is_refused(tmp_path: Path) -> None:
    tokenizer = with_template(tmp_path, DROPPING)
    one = build_prompt(tokenizer, None, user("t"), "")
    with pytest.raises(BadRequest, match="drops or changes"):
        build_prompt(tokenizer, turn(one, [65]), user("o"), "")


def test_a_template_that_refuses_is_a_bad_request(tmp_path: Path) -> None:
    tokenizer = with_template(tmp_path, REFUSING)
    with pytest.raises(BadRequest, match="refuses"):
        build_prompt(tokenizer, None, user("t"), "")


def test_a_folder_without_tokenizer_or_template_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PolicyRefused):
        ChatTokenizer(tmp_path)
    with pytest.raises(PolicyRefused, match="chat template"):
        with_template(tmp_path / "plain", "")


def test_first_turn_needs_messages(tokenizer: ChatTokenizer) -> None:
    with pytest.raises(BadRequest):
        build_prompt(tokenizer, None, [], "")


@given(st.integers(0, 3000), st.integers(1, 3000), st.integers(0, 3000), st.integers(1, 3000))
def test_room_never_passes_a_limit(prompt: int, wanted: int, context: int, engine: int) -> None:
    new = room(prompt, wanted, context, engine)
    limit = min(context or engine, engine)
    assert 0 <= new <= wanted
    assert new == 0 or prompt + new <= limit
    assert new == wanted or prompt + new >= limit


@pytest.mark.parametrize(
    "broken",
    [
        TurnTokens(prompt_ids=[1], output_ids=[1, 2], logprobs=[0.0, 0.0], versions=[1]),
        TurnTokens(output_ids=[1], logprobs=[0.0], versions=[1]),
        TurnTokens(prompt_ids=[1], turn_starts=[1]),
    ],
)
def test_prior_tokens_that_contradict_themselves_are_refused(broken: TurnTokens) -> None:
    with pytest.raises(BadRequest):
        parse_prior(broken.SerializeToString())
