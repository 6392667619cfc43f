"""Packs: sequences as one prefix tree, so that tokens which several of them share are computed once.

All episodes of a group have the same prompt, all groups the same system message, and samples of a confident
policy often begin alike. A causal model gives a token the same state in every sequence that begins with the
same tokens, so a tree's losses and gradients are those of its sequences one by one, up to the order of
floating-point sums.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sandpiper.token_ids import common_prefix
from services.learner.training.sequences import Ints, TrainSequence


@dataclass(frozen=True)
class Node:
    """A run of tokens that the same sequences share. Nodes of a pack are in order of `offset`."""

    offset: int
    """Where it lies in the pack."""
    length: int
    position: int
    """Of its first token within its sequences."""
    ancestors: tuple[int, ...]
    """Indices of the nodes before it, from the root."""


@dataclass(frozen=True)
class Pack:
    """Sequences for one forward pass."""

    members: tuple[TrainSequence, ...]
    nodes: tuple[Node, ...]
    paths: tuple[tuple[int, ...], ...]
    """Per member the nodes from root to end."""

    @property
    def length(self) -> int:
        """Tokens to compute."""
        return sum(node.length for node in self.nodes)

    def places(self, member: int) -> Ints:
        """[L] where each token of a member lies in the pack."""
        nodes = (self.nodes[index] for index in self.paths[member])
        return np.concatenate([np.arange(n.offset, n.offset + n.length, dtype=np.int64) for n in nodes])


def packs_of(sequences: Sequence[TrainSequence], limit: int, share: bool) -> list[Pack]:
    """Packs of at most `limit` tokens each, unless a single sequence is longer; of nearly equal size.

    `share=False` gives every sequence a pack of its own, for models whose attention is not plain causal.
    """
    ordered = sorted(sequences, key=lambda s: (s.ids.tolist(), s.episode_id))
    if not share:
        return [build([one]) for one in ordered]
    new = [len(s.ids) - n for s, n in zip(ordered, _shared(ordered), strict=True)]
    return [build(ordered[start:end]) for start, end in _even_cuts(ordered, new, limit)]


def build(ordered: Sequence[TrainSequence]) -> Pack:
    """The pack of sequences that are sorted by their ids."""
    nodes: list[Node] = []
    paths: list[list[int]] = [[] for _ in ordered]
    offset = 0
    todo = [(0, len(ordered), 0)]
    while todo:
        first, last, depth = todo.pop()
        # Sorted: what the first and the last have in common, all have.
        end = depth + common_prefix(ordered[first].ids[depth:], ordered[last - 1].ids[depth:])
        if end > depth:
            for path in paths[first:last]:
                path.append(len(nodes))
            nodes.append(Node(offset, end - depth, depth, tuple(paths[first][:-1])))
            offset += end - depth
        while first < last and len(ordered[first].ids) == end:
            first += 1
        todo += reversed([(a, b, end) for a, b in _branches(ordered, first, last, end)])
    return Pack(tuple(ordered), tuple(nodes), tuple(map(tuple, paths)))


def _branches(ordered: Sequence[TrainSequence], first: int, last: int, at: int) -> Iterator[tuple[int, int]]:
    for _, run in itertools.groupby(range(first, last), key=lambda i: int(ordered[i].ids[at])):
        members = list(run)
        yield members[0], members[-1] + 1


def _shared(ordered: Sequence[TrainSequence]) -> list[int]:
    """Tokens that each sequence has in common with the one before it."""
    return [0, *(common_prefix(a.ids, b.ids) for a, b in itertools.pairwise(ordered))][: len(ordered)]


def _even_cuts(ordered: Sequence[TrainSequence], new: Sequence[int], limit: int) -> list[tuple[int, int]]:
    """As few packs as `limit` allows, the largest as small as that allows (in sixteenths of `limit`)."""
    fewest = list(_cuts(ordered, new, limit))
    least = -(-sum(new) // max(len(fewest), 1))
    for target in range(least, limit, max(1, limit // 16)):
        cuts = list(_cuts(ordered, new, target))
        if len(cuts) <= len(fewest):
            return cuts
    return fewest


def _cuts(ordered: Sequence[TrainSequence], new: Sequence[int], limit: int) -> Iterator[tuple[int, int]]:
    """Cut before `limit` is passed; the first sequence after a cut brings all its tokens."""
    start, held = 0, 0
    for index, tokens in enumerate(new):
        if held and held + tokens > limit:
            yield start, index
            start, held = index, 0
        held += tokens if held else len(ordered[index].ids)
    if held:
        yield start, len(ordered)
