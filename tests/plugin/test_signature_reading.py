"""Options are read from the source; where that does not tell, from the imported object."""

from __future__ import annotations

import sys

import pytest

from rlbench.errors import PluginError
from rlbench.plugin import definition
from rlbench.plugin.registry import Component, Owner
from rlbench.plugin.signature import options, read_options

HEAD = """
from __future__ import annotations
import dataclasses, enum, functools, typing
from dataclasses import dataclass, field, KW_ONLY
from typing import Annotated, ClassVar, Literal, Optional, Protocol
Side = Literal["left", "right"]
"""


@pytest.fixture
def component(write, monkeypatch, tmp_path):
    """Make a component out of the source of a module `demo_source`."""

    def make(source, target="demo_source:f", *, kind="loss", needs=()):
        write("demo_source.py", "")  # the text below has its own indentation
        (tmp_path / "demo_source.py").write_text(HEAD + source, encoding="utf-8")
        monkeypatch.syspath_prepend(tmp_path)
        return Component(
            kind=kind,
            name="mine",
            target=target,
            summary="x",
            needs=needs,
            aliases=(),
            group_relative=False,
            exceptions={},
            owner=Owner("demo", "rlbench-demo", "1.2"),
        )

    return make


def shape(found):
    return [(o.name, o.type, o.default, o.optional, o.choices, o.interval) for o in found]


STATIC = {
    "i: int = 3": ("i", "int", 3, False, (), None),
    "x: float = 3": ("x", "float", 3.0, False, (), None),
    "x: float = -1e-3": ("x", "float", -0.001, False, (), None),
    "s: str = 'a,b'": ("s", "str", "a,b", False, (), None),
    "b: bool = True": ("b", "bool", True, False, (), None),
    "c: Literal['a', 'b'] = 'a'": ("c", "str", "a", False, ("a", "b"), None),
    "c: Literal[1, 2] = 1": ("c", "int", 1, False, (1, 2), None),
    "c: Literal['a', None] = None": ("c", "str", None, True, ("a",), None),
    "c: Side = 'left'": ("c", "str", "left", False, ("left", "right"), None),
    "c: Side | None = None": ("c", "str", None, True, ("left", "right"), None),
    "x: Annotated[float, '[0, 1]'] = 0.5": ("x", "float", 0.5, False, (), "[0, 1]"),
    "x: typing.Annotated[int, 'x'.upper, '[1, inf)'] = 1": ("x", "int", 1, False, (), "[1, inf)"),
    "x: Annotated[float, '(0, inf)'] | None = None": ("x", "float", None, True, (), "(0, inf)"),
    "x: Annotated[float | None, '(0, 1)'] = None": ("x", "float", None, True, (), "(0, 1)"),
    "x: Optional[int] = None": ("x", "int", None, True, (), None),
    "x: 'float | None' = 2.0": ("x", "float", 2.0, True, (), None),
    "x=0.5": ("x", "float", 0.5, False, (), None),
    "x=True": ("x", "bool", True, False, (), None),
}


@pytest.mark.parametrize("parameter", STATIC)
def test_a_parameter_is_read_without_importing(component, parameter):
    made = component(f"raise ImportError\ndef f(batch, *, {parameter}): pass")
    assert shape(options(made)) == [STATIC[parameter]]
    assert "demo_source" not in sys.modules


@pytest.mark.parametrize("parameter", STATIC)
def test_an_imported_function_says_the_same(component, parameter):
    source = f"@functools.cache\ndef f(batch, *, {parameter}): pass"
    assert shape(options(component(source))) == [STATIC[parameter]]
    # and with annotations that exist as objects
    text = HEAD.replace("from __future__ import annotations", "") + source
    made = component("")
    definition.read_module("demo_source").path.write_text(text, encoding="utf-8")
    sys.modules.pop("demo_source")
    assert shape(options(made)) == [STATIC[parameter]]


REFUSED = {
    "batch, *, x: float": "option 'x': its default is missing",
    "batch, *, x": "option 'x': its default is missing",
    "batch, *, x: float = 1j": "option 'x': its default is missing or not a plain",
    "batch, *, x: list = ()": "option 'x': its default is missing or not a plain",
    "batch, *, x: list = None": "option 'x': list is no type of an option",
    "batch, *, x: int | float = 1": "option 'x': an option has one type",
    "batch, *, x: None = None": "option 'x': it needs a type",
    "batch, *, x=None": "option 'x': it needs a type",
    "batch, *, x: Literal['a', 1] = 1": "the choices of a Literal are all text",
    "batch, *, x: Literal[Side] = 'a'": "the choices of a Literal are all text",
    "batch, *, x: Annotated[float, '0..1'] = 1": "'0..1' is no interval",
    "batch, *, x: Annotated[str, '[0, 1]'] = 'a'": "is a range, and str has none",
    "batch, *, x: Annotated[float, '[0, 1]'] = 2": r"its own default is refused: .* x=2: expected",
    "batch, *, x: int = 1.5": "its own default is refused",
    "batch, *, x: int = True": "its own default is refused",
    "batch, *, x: float = None": "its own default is refused",
    "batch, *, x: Side = 'up'": "its own default is refused",
    "batch, x: float = 1.0": "parameter 'x' is positional",
    "batch, more": "parameter 'more' is positional",
    "": "takes no data",
    "*, x: float = 1.0": "takes no data",
    "*batch": r"takes \*batch",
    "batch, **options": r"takes \*\*options",
}


@pytest.mark.parametrize("decorator", ["", "@functools.cache\n"])
@pytest.mark.parametrize("parameters", REFUSED)
def test_a_signature_that_is_no_components_is_refused(component, parameters, decorator):
    made = component(f"{decorator}def f({parameters}): pass")
    with pytest.raises(PluginError, match=REFUSED[parameters]) as caught:
        options(made)
    assert "loss 'mine' (rlbench-demo 1.2 (plugin demo))" in str(caught.value)


CLASSES = {
    "init": (
        "class K:\n  def __init__(self, *, a: int = 1, b: float = 2.0): pass",
        [("a", 1), ("b", 2.0)],
    ),
    "nothing": ("class K:\n  pass", []),
    "protocol": ("class P(Protocol):\n  pass\nclass K(P):\n  pass", []),
    "dataclass": (
        "@dataclass(frozen=True, kw_only=True)\nclass K:\n  a: int = 1\n  b: Side = 'left'\n"
        "  c: ClassVar[int] = 3",
        [("a", 1), ("b", "left")],
    ),
    "fields": (
        "@dataclasses.dataclass\nclass K:\n  _: KW_ONLY\n  a: int = field(default=1, repr=False)\n"
        "  b: int = field(default=2, init=False)",
        [("a", 1)],
    ),
    "inherited": (
        "class P:\n  def __init__(self, *, a: int = 1): pass\nclass K(P):\n  '''Args:\n a: A.'''",
        [("a", 1)],
    ),
    "own init before the inherited one": (
        "class P:\n  def __init__(self, *, a: int = 1): pass\n"
        "class K(P):\n  def __init__(self, *, b: int = 2): pass",
        [("b", 2)],
    ),
}


@pytest.mark.parametrize("decorator", ["", "@typing.final\n"])
@pytest.mark.parametrize("case", CLASSES)
def test_a_class_is_read_with_and_without_importing(component, case, decorator):
    source, right = CLASSES[case]
    head, _, last = (
        source.rpartition("@data") if "@data" in source else source.rpartition("class K")
    )
    mark = "@data" if "@data" in source else "class K"
    made = component(f"{head}{decorator}{mark}{last}", "demo_source:K", kind="task")
    assert [(o.name, o.default) for o in options(made)] == right
    assert ("demo_source" in sys.modules) == bool(decorator)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("class K:\n  def __init__(self, a=1): pass", "parameter 'a' is positional"),
        ("class K:\n  def __init__(self, **k): pass", r"takes \*\*k"),
        ("@dataclass\nclass K:\n  a: int", "option 'a': its default is missing"),
        ("@dataclass\nclass K:\n  a: int = field(default_factory=int)", "its default is missing"),
        ("def K(batch): pass", "is a function; a component of the kind task is a class"),
    ],
)
def test_a_class_that_is_no_component_is_refused(component, source, message):
    with pytest.raises(PluginError, match=message):
        options(component(source, "demo_source:K", kind="task"))


def test_a_class_is_no_loss(component):
    with pytest.raises(PluginError, match="is a class; a component of the kind loss is a function"):
        options(component("class f:\n  pass"))


def test_a_computed_default_is_none_that_help_can_show(component):
    with pytest.raises(PluginError, match="its default is missing or not a plain number"):
        options(component("def f(batch, *, x: float = 2 * 3.0): pass"))


def test_a_partial_function_has_its_own_defaults(component):
    source = (
        "def g(batch, *, lam: Annotated[float, '[0, 1]'] = 0.9, n: int = 2):\n"
        "  '''Do.\n\n  Args:\n    lam: Lambda.\n  '''\n"
        "f = functools.partial(g, lam=0.0)"
    )
    lam, n = options(component(source))
    assert (lam.default, lam.interval, lam.doc, n.default) == (0.0, "[0, 1]", "Lambda.", 2)


def test_a_name_defined_twice_is_asked_for_at_run_time(component):
    source = "def f(batch, *, a: int = 1): pass\nif True:\n  def f(batch, *, b: int = 2): pass"
    assert [o.name for o in options(component(source))] == ["b"]


def test_re_exports_are_followed_without_importing(component, write):
    write("demo_pkg/__init__.py", "from .inner import g as f\nraise ImportError")
    write("demo_pkg/inner.py", "from demo_pkg.deep.x import g\nraise ImportError")
    write("demo_pkg/deep/__init__.py", "raise ImportError")
    write(
        "demo_pkg/deep/x.py",
        """
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            from ..sides import Side
        def g(batch, *, c: "Side" = "up"): pass
        raise ImportError
        """,
    )
    write("demo_pkg/sides.py", "from typing import Literal\nSide = Literal['up', 'down']")
    (found,) = options(component("", "demo_pkg:f"))
    assert found.choices == ("up", "down")
    assert "demo_pkg" not in sys.modules


def test_imports_in_a_circle_end(component, write):
    write("demo_a.py", "from demo_b import f")
    write("demo_b.py", "from demo_a import f")
    with pytest.raises(PluginError, match="ImportError"):
        options(component("", "demo_a:f"))


def test_a_missing_target_is_blamed_on_its_owner(component):
    for target in ("demo_source:nothing", "demo_nowhere:f"):
        with pytest.raises(PluginError, match=r"loss 'mine' \(rlbench-demo 1.2.*can't be imported"):
            options(component("", target))


def test_the_docstring_says_what_an_option_is(component):
    source = '''
def f(batch, *, a: int = 1, b: int = 2, c: int = 3):
    """Do something.

    Note:
        a: not this one.

    Args:
        batch: The data.
        a: First line,
            second: line.
        b (int): With a type.

    Returns:
        c: nor this one.
    """
'''
    assert [o.doc for o in options(component(source))] == [
        "First line, second: line.",
        "With a type.",
        "",
    ]


def test_the_docs_of_a_class_may_stand_in_its_init(component):
    source = (
        'class K:\n  """Be.\n\n  Attributes:\n    a: Outer.\n  """\n'
        "  def __init__(self, *, a: int = 1, b: int = 2):\n"
        '    """Make.\n\n    Args:\n      b: Inner.\n    """'
    )
    assert [o.doc for o in options(component(source, "demo_source:K", kind="task"))] == [
        "Outer.",
        "Inner.",
    ]


def test_options_of_any_file_can_be_read(write):
    path = write("some.py", "class Settings:\n  def __init__(self, *, lr: float = 1e-3): pass")
    (found,) = read_options(path, "Settings", "trainer setting")
    assert (found.name, found.default, found.owner) == ("lr", 0.001, "trainer setting")
    for name in ("Nothing", "lr"):
        with pytest.raises(PluginError, match="trainer setting: the signature of"):
            read_options(path, name, "trainer setting")
    with pytest.raises(PluginError, match="can't be read"):
        read_options(path.parent / "absent.py", "Settings", "trainer setting")


def test_an_edited_file_is_read_again(component, tmp_path):
    import os

    made = component("def f(batch, *, a: int = 1): pass")
    assert [o.name for o in options(made)] == ["a"]
    path = tmp_path / "demo_source.py"
    path.write_text("def f(batch, *, b: int = 1): pass")
    os.utime(path, ns=(1, 1))
    assert [o.name for o in options(made)] == ["b"]


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("async def f(batch, *, x: float = 1.0):\n    return x", "async"),
        ("async def f(batch):\n    yield 1", "async"),
        ("def f(batch):\n    if batch:\n        yield 1", "a generator"),
        ("def f(batch):\n    return (yield from batch)", "a generator"),
        ("def g(batch):\n    yield 1\nf = functools.partial(g)", "a generator"),
        ("def w(g):\n    return g\n@w\nasync def f(batch):\n    return 1", "async"),
    ],
)
def test_what_returns_no_answer_when_it_is_called_is_refused(component, source, found):
    with pytest.raises(PluginError, match=f"demo_source:f is {found}; write a plain function"):
        options(component(source))


def test_a_function_with_a_generator_inside_is_plain(component):
    inner = "    def g():\n        yield 1\n    return [*g(), *(i for i in g())]"
    found = options(component(f"def f(batch, *, x: int = 1):\n{inner}"))
    assert [option.name for option in found] == ["x"]
