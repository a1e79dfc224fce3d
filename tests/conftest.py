import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def no_loose_plugins_from_other_tests() -> Iterator[None]:
    """A loose file stays imported in its process, and its name is taken for the next test."""
    yield
    for name in [name for name in sys.modules if name.startswith("rlbench_file_")]:
        del sys.modules[name]
