"""Temporary: moves here from the grid wing."""

from typing import Any


def fingerprint(component: Any) -> str:
    """Hash the closure of a component."""
    return f"pending {component.target}"


def module_fingerprint(module: str) -> str:
    """Hash the closure of a module."""
    return f"pending {module}"
