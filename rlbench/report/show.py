"""What can be plugged into a run, as text: lists of components, one component, all plugins."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from rlbench.plugin import kl
from rlbench.plugin.signature import options
from rlbench.report.prose import DESCRIPTION, layout, sections, two_columns, wrap
from rlbench.training.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rlbench.plugin.registry import Component, Registry
    from rlbench.plugin.signature import Option
    from rlbench.report.prose import Sections
    from rlbench.types import Kind

ORDER = (
    DESCRIPTION,
    "place and estimator",
    "estimates",
    "see",
    "differs",
    "returns",
    "metrics",
    "raises",
)
"""Sections of a component's documentation, in the order they are shown in; others follow."""


def list_text(registry: Registry, kinds: Sequence[Kind], width: int = 80) -> str:
    """List components with their summaries, one heading for each kind.

    Args:
        registry: The components.
        kinds: What to list, in this order.
        width: Columns to wrap summaries to.

    Returns:
        Text without a newline at the end. A component of anybody but rlbench has its owner beside
        it; a name with two owners is marked, because it can't be used.
    """
    blocks = []
    for kind in kinds:
        components = registry.components(kind)
        rows = []
        for component in components:
            names = [component.name, *component.aliases]
            text = component.summary
            if component.owner.distribution != "rlbench":
                text += f" [{component.owner}]"
            if len({id(c) for name in names for c in registry.owners(kind, name)}) > 1:
                text += " AMBIGUOUS: several plugins claim this name, so it can't be used."
            rows.append((", ".join(names), text))
        blocks.append(f"{kind}\n{two_columns(rows, width) or '  (none installed)'}")
    return "\n\n".join(blocks)


def settings_text(width: int = 80) -> str:
    """List the trainer's settings, which ``--set`` takes."""
    return f"setting\n{_options(Settings.options(), width)}"


def setting_text(name: str, width: int = 80) -> str:
    """Describe one setting; UsageError with the nearest name if there is none."""
    return f"setting\n{_options([Settings.option(name)], width)}"


def component_text(component: Component, width: int = 80) -> str:
    """Describe one component: owner, needs, options with ranges, and its documentation.

    The sections of the documentation have titles of their own: what it does with its formulas,
    its sources, how libraries differ, what it returns, the metrics that it logs.

    Args:
        component: What to describe; nothing of it is imported where its source can be read.
        width: Columns to wrap to.

    Returns:
        Text without a newline at the end.
    """
    facts = [("owner", str(component.owner)), ("target", component.target)]
    if component.aliases:
        facts.append(("aliases", ", ".join(component.aliases)))
    if component.needs:
        facts.append(("needs", ", ".join(component.needs)))
    if component.group_relative:
        facts.append(("compares", "completions of one prompt, so group_size must be 2 or more"))
    facts += [(f"breaks {rule}", reason) for rule, reason in component.exceptions.items()]
    known = options(component)
    blocks = [
        "\n".join(wrap(f"{component.kind} {component.name}: {component.summary}", width, hang=2)),
        two_columns(facts, width),
        f"options\n{_options(known, width, component.only_if)}" if known else "no options",
    ]
    for title, paragraphs in _documentation(component).items():
        blocks += filter(None, [layout(title, paragraphs, width)])
    return "\n\n".join(blocks)


def plugins_text(registry: Registry, width: int = 80) -> str:
    """List plugins with their versions, where they come from, and what they registered.

    Args:
        registry: The components and the problems of loading them.
        width: Columns to wrap to.

    Returns:
        Text without a newline at the end; plugins that could not be loaded are in it, with why.
    """
    owned: dict[str, list[Component]] = {}
    problems: dict[str, list[str]] = {}
    for problem in registry.problems:
        problems.setdefault(str(problem.owner), []).append(problem.message)
    for component in registry.components():
        owned.setdefault(str(component.owner), []).append(component)
    blocks = []
    for owner, components in owned.items():
        by_kind: dict[str, list[str]] = {}
        for component in components:
            by_kind.setdefault(component.kind, []).append(component.name)
        origin = components[0].owner.path or _origin(components[0].target)
        rows = [("from", origin)] if origin else []
        rows += [(kind, ", ".join(names)) for kind, names in by_kind.items()]
        rows += [("PROBLEM", message) for message in problems.pop(owner, [])]
        blocks.append(f"{owner}\n{two_columns(rows, width)}")
    for owner, messages in problems.items():
        rows = [("NOT LOADED", message) for message in messages]
        blocks.append(f"{owner}\n{two_columns(rows, width)}")
    return "\n\n".join(blocks)


def docstring(target: str) -> str:
    """Read the documentation of ``module:attribute`` from its source, without importing it.

    Args:
        target: As a plugin registered it.

    Returns:
        The cleaned docstring; empty if there is none or the source can't be found.
    """
    module, _, attribute = target.partition(":")
    path = _source(module)
    if path is None:
        return ""
    try:
        body = ast.parse(path.read_text(encoding="utf-8")).body
    except (OSError, SyntaxError, ValueError):
        return ""
    documented: ast.AST | None = None
    for name in attribute.split("."):
        documented = next((node for node in body if getattr(node, "name", None) == name), None)
        body = getattr(documented, "body", [])
    if not isinstance(documented, (ast.FunctionDef, ast.ClassDef)):
        return ""
    return ast.get_docstring(documented) or ""


def _documentation(component: Component) -> Sections:
    """Sections from the docstrings of a component and of what the trainer adds to it."""
    found = sections(docstring(component.target))
    if kl.host_options(component):
        for title, text in (
            ("place and estimator", kl.PLACES),
            ("estimates", docstring(kl.EXPLAINED)),
        ):
            added = sections(text)
            found[title] = added.pop(DESCRIPTION, [])
            for shared in ("see", "differs", "metrics"):
                found.setdefault(shared, []).extend(added.get(shared, []))
    order = [title for title in ORDER if title in found]
    return {title: found[title] for title in dict.fromkeys([*order, *found])}


def _source(module: str) -> Path | None:
    """Find the file of a module; only its parent packages are imported."""
    try:
        spec = find_spec(module)
    except (ImportError, ValueError, AttributeError):
        return None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    return Path(spec.origin)


def _origin(target: str) -> str:
    """Folder or file of the package that a target lies in."""
    path = _source(target.partition(":")[0].partition(".")[0])
    if path is None:
        return ""
    return str(path.parent if path.name == "__init__.py" else path)


def _options(known: Iterable[Option], width: int, only_if: Mapping[str, str] | None = None) -> str:
    """Two columns: name with default; what is allowed and when, then the documentation."""
    rows = []
    for option in known:
        condition = (only_if or {}).get(option.name)
        when = f"; only if {condition}" if condition else ""
        name = f"{option.name}={option.spell(option.default)}"
        rows.append((name, f"{option.allowed}{when}\n{option.doc}"))
    return two_columns(rows, width)
