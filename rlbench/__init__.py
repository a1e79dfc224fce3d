"""rlbench: which piece of RL fine-tuning makes the difference?"""

from __future__ import annotations

from rlbench.hookspecs import hookimpl

__version__ = "0.1.0"
__all__ = ["__version__", "hookimpl"]
