"""What can be plugged into a run, as text: lists of components, one component, all plugins."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from rlbench.plugin import kl
from rlbench.plugin.registry import BUILTIN
from rlbench.plugin.signature import options
from rlbench.report.text.prose import DESCRIPTION, is_table, layout, sections, two_columns, wrap
from rlbench.training import elsewhere
from rlbench.training.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rlbench.plugin.registry import Component, Registry
    from rlbench.plugin.signature import Option
    from rlbench.report.text.prose import Sections
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

HEADINGS = {"see": "source", "differs": "variants by library"}
"""What a section is called here, where that is not the word that docstrings have."""

NEEDS = {
    "values": "a critic is trained",
    "last_value": "its value after the last token",
    "greedy_reward": "one more completion for each prompt",
    "ref_logp": "a pass of the base policy",
    "whole_step": "the optimiser step in one batch, whatever microbatches says",
}
"""What it costs that a component needs something."""

TRAINERS_METRICS: Mapping[Kind, Mapping[str, str]] = {
    "estimator": {"flat_groups": "Share of groups whose rewards are all equal."},
    "loss": {
        "loss": "The objective as minimised, with the terms of KL and entropy.",
        "kl_old": "KL from the policy that sampled to the one trained, by k3, nats a token.",
        "ratio_clamped": "Share of tokens whose log-ratio left ±20.",
    },
}
"""What a run logs for every component of a kind, beside what the component logs."""

CRITICS_METRICS = {
    "value_loss": "Half the mean squared error of the critic.",
    "explained_variance": "Of the critic: 1 - Var(returns - values) / Var(returns).",
}
"""What a run logs if its estimator needs values."""

EXPLAINED = {"aggregation": "rlbench.aggregation"}
"""Settings with a module whose documentation has a table of what their values mean."""


def list_text(registry: Registry, kinds: Sequence[Kind], width: int = 80) -> str:
    """List components with their summaries, one heading for each kind.

    Args:
        registry: The components.
        kinds: What to list, in this order.
        width: Columns to wrap summaries to.

    Returns:
        Text without a newline at the end. Components of anybody but rlbench stand below the name of
        their owner, aliases at the end of a kind. A name with two owners is marked, because it
        can't be used.
    """
    return "\n\n".join(_list_of_kind(registry, kind, width) for kind in kinds)


def _list_of_kind(registry: Registry, kind: Kind, width: int) -> str:
    components = registry.components(kind)
    if not components:
        return f"{kind}\n  (none installed)"
    left = max(len(component.name) for component in components)
    rows: dict[str, list[tuple[str, str]]] = {kind: []}  # by heading: rlbench's own come first
    for component in components:
        own = component.owner.distribution == BUILTIN
        claimants = {id(c) for name in component.names for c in registry.owners(kind, name)}
        mark = " AMBIGUOUS: several plugins claim this name, so it can't be used."
        rows.setdefault(kind if own else f"{kind} [{component.owner}]", []).append(
            (component.name, component.summary + (mark if len(claimants) > 1 else ""))
        )
    aliases = ", ".join(f"{alias}={c.name}" for c in components for alias in c.aliases)
    if aliases:
        rows["also"] = [("(alias=name)", aliases)]
    return "\n".join(f"{head}\n{two_columns(of, width, left)}" for head, of in rows.items() if of)


def settings_text(width: int = 80) -> str:
    """List the trainer's settings, which ``--set`` takes."""
    return f"setting\n{_options(Settings.options(), width)}"


def setting_text(name: str, width: int = 80) -> str:
    """Describe one setting; UsageError with the nearest name if there is none."""
    named = {name: elsewhere.names_of(name)}
    text = f"setting\n{_options([Settings.option(name)], width, named=named)}"
    explained = sections(docstring(EXPLAINED.get(name, ""))).get(DESCRIPTION, [])
    tables = [block for block in explained if is_table(block)]
    return f"{text}\n\n{layout('values', tables, width)}" if tables else text


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
    known = options(component)
    named = {option.name: component.names_elsewhere(option.name) for option in known}
    blocks = [
        "\n".join(wrap(f"{component.kind} {component.name}: {component.summary}", width, hang=2)),
        two_columns(_facts(component), width),
        f"options\n{_options(known, width, component.only_if, named)}" if known else "no options",
    ]
    for title, paragraphs in _documentation(component).items():
        text = layout(title, paragraphs, width)
        blocks += [HEADINGS.get(title, title) + text.removeprefix(title)] if text else []
    logged = dict(TRAINERS_METRICS.get(component.kind, {}))
    if "values" in component.needs:
        logged |= CRITICS_METRICS
    if logged:
        blocks.append(f"metrics of the trainer\n{two_columns(list(logged.items()), width)}")
    return "\n\n".join(blocks)


def _facts(component: Component) -> list[tuple[str, str]]:
    """Whose it is, what it is called, what it needs, what it breaks."""
    facts = [("owner", str(component.owner)), ("target", component.target)]
    if component.aliases:
        facts.append(("aliases", ", ".join(component.aliases)))
    named = [(name, text) for name, text in component.elsewhere.items() if not name.startswith(":")]
    if named:
        facts.append(("elsewhere", "\n".join(f"{name}: write {text}" for name, text in named)))
    needs = [f"{need} ({NEEDS[need]})" if need in NEEDS else need for need in component.needs]
    if needs or component.kind in ("estimator", "loss", "kl"):
        facts.append(("needs", ", ".join(needs) or "nothing more than every run has"))
    if component.group_relative:
        facts.append(("compares", "completions of one prompt, so group_size must be 2 or more"))
    if component.exceptions:
        broken = component.exceptions.items()
        facts.append(("breaks", "\n".join(f"{rule}: {reason}" for rule, reason in broken)))
    return facts


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
        target: As a plugin registered it; a module alone for the module's own.

    Returns:
        The cleaned docstring; empty if there is none or the source can't be found.
    """
    module, _, attribute = target.partition(":")
    path = _source(module)
    if path is None:
        return ""
    try:
        documented: ast.AST | None = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return ""
    for name in attribute.split(".") if attribute else ():
        body = getattr(documented, "body", [])
        documented = next((node for node in body if getattr(node, "name", None) == name), None)
    if not isinstance(documented, (ast.Module, ast.FunctionDef, ast.ClassDef)):
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
    if component.kind in TRAINERS_METRICS:
        found.setdefault("metrics", [["None of its own."]])
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


def _options(
    known: Iterable[Option],
    width: int,
    only_if: Mapping[str, str] | None = None,
    named: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """Two columns: name with default; what is allowed and when, then the documentation.

    Names that others use come last.
    """
    rows = []
    for option in known:
        condition = (only_if or {}).get(option.name)
        when = f"; only if {condition}" if condition else ""
        name = f"{option.name}={option.spell(option.default)}"
        others = ", ".join((named or {}).get(option.name, ()))
        also = f"\nElsewhere: {others}." if others else ""
        rows.append((name, f"{option.allowed}{when}\n{option.doc}{also}"))
    return two_columns(rows, width)
