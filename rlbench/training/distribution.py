"""From logits to the distribution that is sampled and scored: one and the same.

Sampling at one temperature and scoring at another makes the first ratio of an update differ from 1,
so every log-probability in rlbench, the policy's, the old one and the reference's, comes from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor

    from rlbench.training.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """Temperature, top-p and top-k of a run."""

    temperature: float
    top_p: float
    top_k: int

    @classmethod
    def of(cls, settings: Settings) -> Distribution:
        """The one that a run samples from."""
        return cls(temperature=settings.temperature, top_p=settings.top_p, top_k=settings.top_k)

    def log_probs(self, logits: Tensor, support: Tensor | None = None) -> Tensor:
        """Log-probabilities (..., V) over the support, -inf outside it; at least float32."""
        scaled = logits if logits.dtype == torch.float64 else logits.float()
        if self.temperature != 1.0:
            scaled = scaled / self.temperature
        if support is not None:
            scaled = scaled.masked_fill(~support, float("-inf"))
        return scaled.log_softmax(-1)

    def support(self, logits: Tensor) -> Tensor | None:
        """Tokens (..., V) that may be sampled; None if all of them.

        Top-k keeps the k most probable, top-p the smallest set of most probable tokens whose
        probability reaches top_p; the temperature acts first. The most probable one always stays.
        """
        size = logits.shape[-1]
        cut_k = 0 < self.top_k < size
        if not cut_k and self.top_p >= 1.0:
            return None
        log_probs, order = self.log_probs(logits).sort(dim=-1, descending=True, stable=True)
        kept = torch.ones_like(log_probs, dtype=torch.bool)
        if cut_k:
            kept[..., self.top_k :] = False
        if self.top_p < 1.0:
            probs = torch.where(kept, log_probs.exp(), 0.0)
            probs = probs / probs.sum(-1, keepdim=True)
            kept &= probs.cumsum(-1) - probs < self.top_p
            kept[..., 0] = True
        return torch.zeros_like(kept).scatter(-1, order, kept)


def chosen(log_probs: Tensor, ids: Tensor) -> Tensor:
    """Log-probabilities of given tokens: (..., V) and (...) to (...)."""
    return log_probs.gather(-1, ids[..., None])[..., 0]
