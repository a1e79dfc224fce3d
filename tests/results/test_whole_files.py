"""Files that appear in one step: where they may be put, and what of links and special files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from rlbench.errors import RlbenchError, UsageError
from rlbench.report.text import whole_file
from rlbench.report.text.whole_file import check_place, in_one_step, is_marked

if TYPE_CHECKING:
    from pathlib import Path


def link(path: Path) -> None:
    path.symlink_to("nowhere")


def circle(path: Path) -> None:
    path.symlink_to(path.name)


ODD = [
    (os.mkdir, "it is a folder; name a file"),
    (os.mkfifo, "it is a FIFO; name a file"),
    (link, "it is a link to nowhere; name a file"),
    (circle, "it is a link in a circle; name a file"),
    (lambda path: path.symlink_to("/dev/null"), "it is a device; name a file"),
]


@pytest.mark.parametrize(("make", "said"), ODD)
def test_what_is_no_file_is_refused_and_stays(tmp_path: Path, make: Any, said: str) -> None:
    path = tmp_path / "x.csv"
    make(path)
    before = os.lstat(path)
    with pytest.raises(UsageError) as refused:
        check_place(path)
    assert str(refused.value) == f"{path}: {said}"
    with pytest.raises(UsageError) as refused:
        check_place(path, "--to x.csv")
    assert str(refused.value) == f"--to x.csv: {said}"
    with pytest.raises(UsageError), in_one_step(path):  # it came to be there after the check
        pytest.fail("it was written")
    now = os.lstat(path)
    assert (now.st_ino, now.st_mode) == (before.st_ino, before.st_mode)
    assert [place.name for place in tmp_path.iterdir()] == ["x.csv"]


def test_a_folder_that_is_not_there_or_not_writable_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match=r"there is no folder .*/no$"):
        check_place(tmp_path / "no" / "x.csv")
    with pytest.raises(UsageError, match="the name is too long"):
        check_place(tmp_path / ("x" * 300))
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "x.csv").write_text("old", "utf-8")
    (tmp_path / "x.csv").symlink_to("there/x.csv")
    check_place(tmp_path / "x.csv")
    monkeypatch.setattr(whole_file.os, "access", lambda path, mode: path == tmp_path)
    check_place(tmp_path / "y.csv")
    with pytest.raises(UsageError, match=f"the folder {tmp_path / 'there'} is not writable"):
        check_place(tmp_path / "x.csv")  # the file is replaced where it is, not where its link is


def test_a_link_to_a_file_is_followed_and_stays(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    target, first = tmp_path / "there" / "real.csv", tmp_path / "first.csv"
    target.write_text("old", "utf-8")
    first.symlink_to("second.csv")
    (tmp_path / "second.csv").symlink_to("there/real.csv")
    with in_one_step(first) as partial:
        partial.write_text("new", "utf-8")
        assert partial.parent == target.parent  # one step needs one file system
        assert target.read_text("utf-8") == "old"
    assert str(first.readlink()) == "second.csv"
    assert target.read_text("utf-8") == "new"
    assert [place.name for place in target.parent.iterdir()] == ["real.csv"]


def test_what_fails_half_way_leaves_the_target_of_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old", "utf-8")
    (tmp_path / "x").symlink_to("real")

    def fail() -> None:
        with in_one_step(tmp_path / "x") as partial:
            partial.write_text("half", "utf-8")
            raise OSError(28, "No space left on device")

    with pytest.raises(RlbenchError, match="x can't be written: No space"):
        fail()
    assert (tmp_path / "x").read_text("utf-8") == "old"
    assert sorted(place.name for place in tmp_path.iterdir()) == ["real", "x"]


def test_a_mark_is_found_wherever_it_is_and_nothing_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole_file, "_PIECE", 4)
    path = tmp_path / "x"
    path.write_bytes(b"")
    assert is_marked(path, b"mark")
    assert is_marked(path, b"mark", within=2)
    for n in range(12):
        path.write_bytes(b"." * n + b"mark" + b"." * 5)
        assert is_marked(path, b"mark"), n
        assert is_marked(path, b"mark", within=8) == (n <= 4), n
    path.write_bytes(b"mar" + b"." * 9 + b"ark")
    assert not is_marked(path, b"mark")
    assert not is_marked(tmp_path / "none", b"mark")
    for number, (make, _) in enumerate(ODD):
        odd = tmp_path / f"odd{number}"
        make(odd)
        assert not is_marked(odd, b"mark")
