"""rlbench: which piece of RL fine-tuning makes the difference?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlbench.hookspecs import hookimpl

if TYPE_CHECKING:
    from rlbench.types import Kind

__version__ = "0.1.0"
__all__ = ["__version__", "component", "hookimpl"]


def component(kind: Kind, name: str) -> Any:
    """Import a component by its name: the function or class itself.

    Args:
        kind: Kind of the component, such as ``"estimator"``.
        name: Its name or an alias.

    Returns:
        ``component("loss", "clip")(batch, eps=0.2)`` calls the loss.

    Raises:
        UsageError: Nobody registered such a component, or several plugins did.
        PluginError: It can't be imported.
    """
    from rlbench.plugin.loading import load  # noqa: PLC0415 - keeps `import rlbench` light

    return load().find(kind, name).load()
