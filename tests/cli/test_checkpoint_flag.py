from pathlib import Path

import pytest
from click.testing import CliRunner

from rlbench.cli import cli
from rlbench.grid import launch
from rlbench.grid.supervisor import Outcome


@pytest.mark.parametrize(
    ("arguments", "content", "expected"),
    [
        ([], "", None),
        (["--checkpoint-every", "5"], "", 5),
        (["grid.toml"], "checkpoint_every = 7", 7),
        (["grid.toml", "--checkpoint-every", "5"], "checkpoint_every = 7", 5),
    ],
)
def test_how_often_to_save_comes_from_the_flag_or_the_file(
    arguments: list[str],
    content: str,
    expected: int | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = []

    def supervise(*_: object, **named: object) -> Outcome:
        given.append(named["checkpoint_every"])
        return Outcome(ok=0, failed=0, skipped=0, interrupted=False, exit_code=0)

    monkeypatch.setattr(launch, "supervise", supervise)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "grid.toml").write_text(content)
    CliRunner().invoke(cli, ["run", "-s", "0", *arguments])
    assert given == [expected]


@pytest.mark.parametrize("value", ["0", "-1", "2.5", "often"])
def test_a_number_of_updates_is_wanted(value: str) -> None:
    done = CliRunner().invoke(cli, ["run", "--checkpoint-every", value])
    assert done.exit_code == 2
    assert "--checkpoint-every" in done.stderr
