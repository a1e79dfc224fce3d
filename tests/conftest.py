import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def no_loose_plugins_from_other_tests() -> Iterator[None]:
    """A loose file stays imported in its process, and its name is taken for the next test."""
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith("rlbench_file_"):
            del sys.modules[name]
