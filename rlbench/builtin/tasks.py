"""Tasks: small, with answers that a program can check.

Both tasks write prompts and answers with single-character tokens and split their prompts by what
has to be learnt, not by spelling: 12+34 and 34+12 are in the same split, and so are all orders of
the same digits to be sorted.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import TYPE_CHECKING, Annotated

import torch

from rlbench.types import Completions, Prompts, Vocabulary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Generator, Tensor

    from rlbench.types import Split

_PAD, _EOS = 0, 1
_DIGIT = 2  # id of the digit 0; the other nine follow
_BARREN = 50  # draws of n prompts without a new one, after which there is none


def pad_right(rows: Sequence[Sequence[int]], pad: int) -> tuple[Tensor, Tensor]:
    """Put rows of different length into one tensor: ids (N, L) and their mask."""
    width = max((len(row) for row in rows), default=0)
    ids = torch.tensor([[*row, *[pad] * (width - len(row))] for row in rows], dtype=torch.int64)
    lengths = torch.tensor([len(row) for row in rows])
    return ids.reshape(len(rows), width), torch.arange(width) < lengths[:, None]


def answers(rows: Sequence[Sequence[int]]) -> Completions:
    """Right answers as completions: each row with its end token."""
    ids, mask = pad_right([[*row, _EOS] for row in rows], _PAD)
    return Completions(ids, mask, truncated=torch.zeros(len(rows), dtype=torch.bool))


@cache
def _split_of(key: tuple[int, ...]) -> Split:
    """Assign an answer to a split, whatever the seed: 70 % train, 10 % validation, 20 % eval."""
    draw = hashlib.sha256(repr(key).encode()).digest()[0]
    if draw < 51:
        return "eval"
    return "validation" if draw < 77 else "train"


def _refuse_empty(found: Sequence[object], split: Split) -> None:
    """Stop a search that would never end."""
    if not found:
        raise ValueError(f"the task has no prompt in its split {split!r}: it is too small")


def written(ids: Sequence[int], mask: Sequence[bool]) -> tuple[list[int], bool]:
    """What a completion says before its end token, and whether it has one."""
    kept = [token for token, there in zip(ids, mask, strict=True) if there]
    if kept and kept[-1] == _EOS:
        return kept[:-1], True
    return kept, False


class Addition:
    """Two numbers are to be added; the score is 1 for the exact sum and 0 for anything else.

    A prompt reads ``07+35=``; the answer is the zero-padded sum, least significant digit first, so
    that each digit can be computed from what has been read: ``240``.
    """

    def __init__(self, *, digits: Annotated[int, "[1, 6]"] = 2) -> None:
        """Choose the size of the operands.

        Args:
            digits: Digits of each operand, usually 1 to 3; the sum has one more.
        """
        self._digits = digits
        self.vocabulary = Vocabulary(
            tokens=("<pad>", "<eos>", *"0123456789", "+", "="), pad=_PAD, eos=_EOS
        )
        self.completion_limit = digits + 2
        self.floor = 0.0

    def prompts(self, n: int, generator: Generator, split: Split) -> Prompts:
        """Draw n sums of one split; those for the evaluation are distinct as long as they last."""
        pairs = self._pairs(n, generator, split)
        plus, equals = _DIGIT + 10, _DIGIT + 11
        ids, mask = pad_right(
            [[*self._spell(a), plus, *self._spell(b), equals] for a, b in pairs], _PAD
        )
        return Prompts(ids, mask, tuple(tuple(self._answer(a + b)) for a, b in pairs))

    def demonstrations(self, n: int, generator: Generator) -> tuple[Prompts, Completions]:
        """Draw n sums of the training split with their answers."""
        prompts = self.prompts(n, generator, "train")
        return prompts, answers(prompts.references)

    def score(self, prompts: Prompts, completions: Completions) -> Tensor:
        """1.0 where the completion is exactly the sum and ended, else 0.0: (B,)."""
        rows = zip(
            completions.ids.tolist(), completions.mask.tolist(), prompts.references, strict=True
        )
        return torch.tensor(
            [float(written(ids, mask) == (list(right), True)) for ids, mask, right in rows],
            dtype=torch.float64,
        )

    def _pairs(self, n: int, generator: Generator, split: Split) -> list[tuple[int, int]]:
        bound = 10**self._digits
        found: list[tuple[int, int]] = []
        seen: set[tuple[int, int]] = set()
        barren = 0
        while len(found) < n:
            drawn = torch.randint(bound, (n, 2), generator=generator).tolist()
            before = len(found)
            for a, b in drawn:
                if _split_of((min(a, b), max(a, b))) != split:
                    continue
                if split != "eval" or (a, b) not in seen:
                    seen.add((a, b))
                    found.append((a, b))
            barren = barren + 1 if len(found) == before else 0
            if barren >= _BARREN:  # every prompt of the split has been given: begin again
                _refuse_empty(found, split)
                seen.clear()
        return found[:n]

    def _spell(self, number: int) -> list[int]:
        return [_DIGIT + int(digit) for digit in f"{number:0{self._digits}d}"]

    def _answer(self, number: int) -> list[int]:
        return [_DIGIT + int(digit) for digit in reversed(f"{number:0{self._digits + 1}d}")]


class Sort:
    """Digits are to be put in ascending order; the score is the share of positions that are right.

    A prompt reads ``31415>``, the answer ``11345``. Lengths are mixed, and an answer of the wrong
    length counts the missing or surplus positions as wrong.
    """

    def __init__(
        self,
        *,
        shortest: Annotated[int, "[1, 40]"] = 3,
        longest: Annotated[int, "[1, 40]"] = 8,
    ) -> None:
        """Choose how many digits a prompt has.

        Args:
            shortest: Least number of digits, usually 3.
            longest: Largest number of digits, usually 8.

        Raises:
            ValueError: If shortest is above longest.
        """
        if shortest > longest:
            raise ValueError(f"shortest={shortest} is above longest={longest}")
        self._shortest, self._longest = shortest, longest
        self.vocabulary = Vocabulary(
            tokens=("<pad>", "<eos>", *"0123456789", ">"), pad=_PAD, eos=_EOS
        )
        self.completion_limit = longest + 1
        self.floor = 0.0

    def prompts(self, n: int, generator: Generator, split: Split) -> Prompts:
        """Draw n rows of digits of one split: length uniform, then digits uniform."""
        found: list[list[int]] = []
        rounds = 0
        while len(found) < n:
            rounds += 1
            if rounds > _BARREN:
                _refuse_empty(found, split)
            span = self._longest - self._shortest + 1
            lengths = (torch.randint(span, (n,), generator=generator) + self._shortest).tolist()
            digits = torch.randint(10, (n, self._longest), generator=generator).tolist()
            drawn = [row[:length] for row, length in zip(digits, lengths, strict=True)]
            found.extend(row for row in drawn if _split_of(tuple(sorted(row))) == split)
        rows = found[:n]
        ids, mask = pad_right([[*(_DIGIT + d for d in row), _DIGIT + 10] for row in rows], _PAD)
        return Prompts(ids, mask, tuple(tuple(_DIGIT + d for d in sorted(row)) for row in rows))

    def demonstrations(self, n: int, generator: Generator) -> tuple[Prompts, Completions]:
        """Draw n rows of the training split with their answers."""
        prompts = self.prompts(n, generator, "train")
        return prompts, answers(prompts.references)

    def score(self, prompts: Prompts, completions: Completions) -> Tensor:
        """Share of positions that hold the right digit, in 0 to 1: (B,)."""
        rows = zip(
            completions.ids.tolist(), completions.mask.tolist(), prompts.references, strict=True
        )
        return torch.tensor(
            [self._share(*written(ids, mask), right) for ids, mask, right in rows],
            dtype=torch.float64,
        )

    @staticmethod
    def _share(said: Sequence[int], ended: bool, right: Sequence[int]) -> float:  # noqa: FBT001 - a pair that `written` returns
        # An answer that never ends is one position longer than what it says.
        positions = max(len(said) + (not ended), len(right))
        return sum(a == b for a, b in zip(said, right, strict=False)) / positions
