"""One plugin at a time: check its hooks, run them, keep all of its registrations or none.

pluggy calls a hook that takes no argument, is a coroutine or has a default without a word, and
nothing gets registered. Here each of these is an error that says what to write instead.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING

import pluggy

from rlbench import hookspecs
from rlbench.errors import PluginError
from rlbench.plugin.guard import guarded
from rlbench.plugin.registry import Component, Owner
from rlbench.version import __version__

if TYPE_CHECKING:
    from rlbench.types import Kind

HOOKS: Mapping[Kind, str] = {
    "estimator": "rlbench_register_estimators",
    "loss": "rlbench_register_losses",
    "kl": "rlbench_register_kl_controllers",
    "task": "rlbench_register_tasks",
    "reward": "rlbench_register_rewards",
    "model": "rlbench_register_models",
    "tracker": "rlbench_register_trackers",
    "engine": "rlbench_register_engines",
}

NEEDS: Mapping[Kind, tuple[str, ...]] = {
    "estimator": ("values", "last_value", "greedy_reward", "ref_logp"),
    "loss": ("ref_logp", "whole_step"),
    "kl": ("ref_logp",),
}

_NAME = re.compile(r"[a-z][a-z0-9_.-]*", re.ASCII)
_DOTTED = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_TARGET = re.compile(rf"({_DOTTED})?:{_DOTTED}")
_MARK = f"{hookspecs.PROJECT}_impl"  # where hookimpl leaves its options
_MODEL_HOOK = "write @hookimpl above a plain `def {hook}(register):`"


def manager() -> pluggy.PluginManager:
    """Make a host that knows the hooks and has no plugin yet."""
    host = pluggy.PluginManager(hookspecs.PROJECT)
    host.add_hookspecs(hookspecs)
    return host


def stage(host: pluggy.PluginManager, plugin: object, owner: Owner) -> tuple[Component, ...]:
    """Register one plugin with the host and run its hooks.

    Args:
        host: What `manager` made. A plugin that is refused leaves it as it was.
        plugin: A module, or an object whose methods are hooks.
        owner: Whose name goes on the components.

    Returns:
        All components of the plugin; none if the host has the plugin already, which happens when
        one module is found in two ways.

    Raises:
        PluginError: The reason, without the owner.
    """
    with guarded():
        try:
            hash(plugin)
        except TypeError:
            raise PluginError(
                f"a plugin object must be hashable, and {type(plugin).__name__} is not"
            ) from None
        if any(plugin is known for known in host.get_plugins()):
            return ()
        _check_api(plugin)
        hooks = list(_hooks(plugin))
        try:
            host.register(plugin, name=str(id(plugin)))
            host.check_pending()
            return _run(host, plugin, owner)
        except BaseException as error:
            if host.get_name(plugin):
                host.unregister(plugin)
            if isinstance(error, pluggy.PluginValidationError):
                raise PluginError(_unknown_hook(hooks)) from error
            raise


def _check_api(plugin: object) -> None:
    """Refuse a plugin that was written for hooks which this version doesn't have."""
    wanted = getattr(plugin, "RLBENCH_API", hookspecs.API)
    if isinstance(wanted, bool) or not isinstance(wanted, int) or wanted < 1:
        raise PluginError(f"RLBENCH_API={wanted!r}: expected a whole number from 1")
    if wanted > hookspecs.API:
        raise PluginError(
            f"it needs hook API {wanted}, and rlbench {__version__} has {hookspecs.API}; upgrade "
            "rlbench, or take an older version of the plugin"
        )


def _hooks(plugin: object) -> Iterator[str]:
    """Yield the names of the hooks that a plugin implements; refuse what would do nothing."""
    found = False
    for name in dir(plugin):
        value = inspect.getattr_static(plugin, name, None)
        if isinstance(value, ModuleType):
            continue
        options = _options(value)
        if options is None:
            if name.startswith("rlbench_") and callable(getattr(value, "__func__", value)):
                raise PluginError(f"{name} is not marked: {_MODEL_HOOK.format(hook=name)}")
            continue
        hook = str(options.get("specname") or name)
        reason = _refusal(plugin, name, options)
        if reason:
            raise PluginError(
                f"hook {name} {reason}, so it would register nothing: "
                f"{_MODEL_HOOK.format(hook=hook)}"
            )
        found = True
        yield hook
    if not found:
        raise PluginError(
            "it has no hook, so it registers nothing: "
            + _MODEL_HOOK.format(hook="rlbench_register_...")
        )


def _options(value: object) -> dict[str, object] | None:
    """Read what @hookimpl left on a function, or on what wraps it."""
    for holder in (value, getattr(value, "__func__", None)):
        options = getattr(holder, "__dict__", {}).get(_MARK)
        if isinstance(options, dict):
            return options
    return None


def _refusal(plugin: object, name: str, options: Mapping[str, object]) -> str | None:
    """Say why pluggy's call of this hook would not do what its author meant."""
    function = getattr(plugin, name)
    if not inspect.isroutine(function):
        return f"is a {type(function).__name__}"
    for flag in ("wrapper", "hookwrapper", "optionalhook"):
        if options.get(flag):
            return f"is declared with {flag}=True"
    if inspect.iscoroutinefunction(function):
        return "is async"
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        return "is a generator"
    parameters = list(inspect.signature(function).parameters.values())
    if len(parameters) == 1:
        one = parameters[0]
        positional = one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
        if one.name == "register" and positional and one.default is one.empty:
            return None
    written = str(inspect.signature(function)).partition(" ->")[0]
    return f"takes {written}, and rlbench {__version__} passes exactly (register)"


def _unknown_hook(hooks: Sequence[str]) -> str:
    """Name the hook that does not exist and the nearest that does."""
    known = HOOKS.values()
    unknown = next(hook for hook in hooks if hook not in known)
    near = difflib.get_close_matches(unknown, known, n=1, cutoff=0.6)
    advice = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
    return f"rlbench {__version__} has no hook {unknown}; {advice}"


def _run(host: pluggy.PluginManager, plugin: object, owner: Owner) -> tuple[Component, ...]:
    """Call the hooks of one plugin and collect what they register."""
    others = host.get_plugins() - {plugin}
    staged: list[Component] = []
    implemented = {caller.name for caller in host.get_hookcallers(plugin) or ()}
    for kind, hook in HOOKS.items():
        if hook not in implemented:
            continue
        before = len(staged)
        with guarded(hook):
            returned = host.subset_hook_caller(hook, others)(
                register=Registrar(kind, owner, _home(plugin), staged)
            )
        if returned:
            for value in returned:
                if inspect.iscoroutine(value):
                    value.close()  # or Python warns that it was never awaited
            raise PluginError(
                f"hook {hook} returned a {type(returned[0]).__name__}; it should call "
                "register and return nothing"
            )
        if len(staged) == before:
            raise PluginError(f"hook {hook} registers nothing: call register in it or remove it")
    return tuple(staged)


def _home(plugin: object) -> str:
    """Name the module that a target without one, ``":my_loss"``, refers to."""
    return plugin.__name__ if isinstance(plugin, ModuleType) else type(plugin).__module__


class Registrar:
    """The callback that one hook of one plugin receives; see `rlbench.hookspecs.Register`.

    Args:
        kind: What the hook registers.
        owner: Whose hook it is.
        home: Module that a target without a module refers to.
        staged: Where components are put; all of this plugin's so far.
    """

    def __init__(self, kind: Kind, owner: Owner, home: str, staged: list[Component]) -> None:
        self._kind = kind
        self._owner = owner
        self._home = home
        self._staged = staged

    def __call__(
        self,
        name: object,
        target: object,
        *,
        summary: object,
        needs: object = (),
        aliases: object = (),
        group_relative: object = False,
        exceptions: object = None,
        only_if: object = None,
        elsewhere: object = None,
    ) -> None:
        """Check and stage one component.

        Raises:
            PluginError: An argument is not what `rlbench.hookspecs` says.
        """
        what = f"{self._kind} {name!r}"
        _check_name(self._kind, name)
        component = Component(
            kind=self._kind,
            name=str(name),
            target=_target(what, target, self._home),
            summary=_summary(what, summary),
            needs=_needs(what, self._kind, needs),
            aliases=_texts(what, "aliases", aliases),
            group_relative=_group_relative(what, self._kind, group_relative),
            exceptions=_exceptions(what, exceptions),
            only_if=_only_if(what, only_if),
            elsewhere=_elsewhere(what, elsewhere),
            owner=self._owner,
        )
        for alias in component.aliases:
            _check_name(self._kind, alias)
        self._check_new(component)
        self._staged.append(component)

    def _check_new(self, component: Component) -> None:
        taken = [n for c in self._staged if c.kind == component.kind for n in c.names]
        for name in component.names:
            if name in taken:
                raise PluginError(f"{component.kind} {name!r} is registered twice (aliases count)")
            taken.append(name)


def _check_name(kind: Kind, name: object) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise PluginError(
            f"{kind} {name!r}: a name has the letters a-z, digits and '_', '.' or '-', "
            "and starts with a letter"
        )


def _target(what: str, target: object, home: str) -> str:
    if not isinstance(target, str) or not _TARGET.fullmatch(target):
        raise PluginError(
            f"{what}: target {target!r} is no 'module:attribute'; "
            'give it as text, for example f"{__name__}:my_function"'
        )
    full = home + target if target.startswith(":") else target
    if full.startswith("__main__:"):
        raise PluginError(f"{what}: worker processes can't import {full}; put it into a module")
    return full


def _summary(what: str, summary: object) -> str:
    if not isinstance(summary, str) or not summary.strip() or len(summary.splitlines()) > 1:
        raise PluginError(f"{what}: summary {summary!r} is not one line of text")
    return summary.strip()


def _needs(what: str, kind: Kind, needs: object) -> tuple[str, ...]:
    possible = NEEDS.get(kind, ())
    for need in (given := _texts(what, "needs", needs)):
        if need not in possible:
            known = ", ".join(possible) or "nothing"
            raise PluginError(f"{what}: needs={need!r}; what a {kind} can need: {known}")
    return given


def _group_relative(what: str, kind: Kind, value: object) -> bool:
    if not isinstance(value, bool):
        raise PluginError(f"{what}: group_relative={value!r} is neither True nor False")
    if value and kind != "estimator":
        raise PluginError(f"{what}: only estimators can be group_relative")
    return value


def _exceptions(what: str, exceptions: object) -> dict[str, str]:
    given = {} if exceptions is None else exceptions
    if not isinstance(given, Mapping):
        raise PluginError(f"{what}: exceptions={given!r} is no mapping of rules to reasons")
    for rule, reason in given.items():
        if not isinstance(rule, str) or not isinstance(reason, str) or not reason.strip():
            raise PluginError(f"{what}: exceptions: rule {rule!r} needs a reason in words")
    return dict(given)


def _only_if(what: str, only_if: object) -> dict[str, str]:
    """Check the form; whether there are such options is seen when they are read."""
    given = {} if only_if is None else only_if
    if not isinstance(given, Mapping):
        raise PluginError(f"{what}: only_if={given!r} is no mapping of options to other=value")
    for option, condition in given.items():
        if not isinstance(option, str) or not isinstance(condition, str):
            raise PluginError(f"{what}: only_if: {option!r}: {condition!r} are not both text")
        other, _equals, value = condition.partition("=")
        if not other or not value or "=" in value or other == option:
            raise PluginError(
                f"{what}: only_if: {option!r}: {condition!r} is no other=value, such as 'std=true'"
            )
    return dict(given)


def _elsewhere(what: str, elsewhere: object) -> dict[str, str]:
    given = {} if elsewhere is None else elsewhere
    if not isinstance(given, Mapping):
        raise PluginError(f"{what}: elsewhere={given!r} is no mapping of names to advice")
    for name, advice in given.items():
        if not isinstance(name, str) or not isinstance(advice, str) or not advice.strip():
            raise PluginError(f"{what}: elsewhere: name {name!r} needs what to write instead")
    return dict(given)


def _texts(what: str, argument: str, values: object) -> tuple[str, ...]:
    if not isinstance(values, (list, tuple)) or not all(isinstance(v, str) for v in values):
        raise PluginError(f"{what}: {argument}={values!r} is no tuple of texts")
    if len(set(values)) < len(values):
        raise PluginError(f"{what}: {argument}={values!r} repeats itself")
    return tuple(values)
