"""Named streams of random numbers.

A stream is known by what it is for, so that no draw depends on how many draws came before it
elsewhere. The components under comparison are never part of a name: at one seed all cells see the
same base policy, the same prompts, the same sampling noise and the same evaluation.
"""

from __future__ import annotations

import hashlib
import json
import random

import numpy as np
import torch

Axis = str | int


def derive(*axes: Axis) -> int:
    """Turn a name into a 63-bit seed: the SHA-256 of its JSON list, so ("a", 1) is not ("a1",)."""
    digest = hashlib.sha256(json.dumps(axes).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def stream(*axes: Axis) -> torch.Generator:
    """Open the stream of that name, on the CPU whatever the device, from its beginning."""
    return torch.Generator().manual_seed(derive(*axes))


def seed_everything(*axes: Axis) -> None:
    """Seed the global generators of random, numpy and torch.

    rlbench itself draws from streams and from the global torch generator where a network is
    initialised; a plugin may draw from any of the three and still gets its run's own numbers.
    """
    seed = derive(*axes)
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)
