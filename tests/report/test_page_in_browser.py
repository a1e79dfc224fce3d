"""A page as Chromium shows it: nothing is loaded or fails, sorting works, nothing overflows."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from html import unescape
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from rlbench.grid.store import Store
from rlbench.report import plots
from rlbench.report.cells.cell import cells
from rlbench.report.compare.comparison import compare, in_order
from rlbench.report.page.page import build
from rlbench.report.page.render import render

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed here")

REFERENCE = Path(__file__).resolve().parents[2] / "results" / "reference"
LONG = "a_name_that_is_so_long_that_nobody_would_type_it_" * 3
SCORES = {"b": 0.8, "c": 0.5, LONG: 0.2}

QUESTIONS = """
const table = document.querySelector("#scores").parentElement.querySelector("table");
const heads = Array.from(table.tHead.rows[0].cells);
const place = (name) => heads.findIndex((one) => one.textContent === name);
const names = () => Array.from(table.tBodies[0].rows).map((row) => row.cells[0].textContent);
const click = (name) => {
  heads[place(name)].querySelector("button").click();
  const sorts = heads.map((one) => one.getAttribute("aria-sort")).filter((one) => one);
  return [names(), ...sorts];
};
const found = {};
for (const details of document.querySelectorAll("details")) details.open = true;
const outside = Array.from(document.querySelectorAll("body *")).filter((one) =>
  !one.closest(".wide svg, .wide table, .sheet svg, pre, .unseen, .skip")
  && one.getBoundingClientRect().right > innerWidth);
found.width = innerWidth;
found.outside = outside.map((one) => one.outerHTML.slice(0, 100));
found.scrolls = document.documentElement.scrollWidth;
found.loaded = performance.getEntriesByType("resource").map((one) => one.name);
const verdicts = document.querySelector("#verdicts").parentElement.querySelector("table");
const kept = verdicts.tBodies[0].rows[0].querySelector(".kept");
const inSight = () => {
  const one = kept.getBoundingClientRect(), frame = verdicts.parentElement.getBoundingClientRect();
  return one.left >= frame.left - 1 && one.right <= frame.right + 1;
};
found.kept = [inSight()];
verdicts.parentElement.scrollLeft = 10000;
found.kept.push(inSight());
verdicts.parentElement.scrollLeft = 0;
found.lines = Array.from(verdicts.querySelectorAll("tbody th bdi")).map((one) =>
  Math.round(one.getBoundingClientRect().height / parseFloat(getComputedStyle(one).lineHeight)));
found.levels = Array.from(document.querySelectorAll("h1,h2,h3,h4")).map((h) => +h.tagName[1]);
const button = heads[place("score")].querySelector("button");
button.focus();
found.focus = [document.activeElement === button, button.type, button.tabIndex];
found.before = names();
found.score = [click("score"), click("score")];
found.name = [click("estimator"), click("estimator")];
table.tBodies[0].rows[1].cells[place("KL")].dataset.key = "";
found.gap = names()[1];
found.kl = [click("KL"), click("KL")];
return found;
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with every section, in a file."""
    out = tmp_path_factory.mktemp("page")
    for number, (name, base) in enumerate(SCORES.items()):
        for source in sorted((REFERENCE / "runs").glob("group-clip-*"))[:3]:
            _write(source, out / "runs", name, base, number)
    shown = in_order(cells(Store(out).read()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plots, "NAMES", ("scores",))
        made = build(shown, title="<b>mine</b>", comparison=compare(shown, shown[1]))
    path = out / "page.html"
    path.write_text(render(made), encoding="utf-8")
    return path


def _write(source: Path, runs: Path, name: str, base: float, number: int) -> None:
    """Write a run of another estimator; one of the second cell failed."""
    spec = json.loads((source / "spec.json").read_text("utf-8"))
    result = json.loads((source / "result.json").read_text("utf-8"))
    spec["run_id"] = result["run_id"] = f"{source.name[:-1]}{number}"
    spec["components"]["estimator"]["label"] = name
    result |= {"score": base + spec["seed"] / 50, "kl": base}
    if number == 1 and spec["seed"] == 0:
        error = {"type": "ValueError", "message": "no </script> " * 20}
        result |= {"status": "failed", "score": None, "error": error}
    folder = runs / spec["run_id"]
    folder.mkdir(parents=True)
    sample = {"update": 0, "prompt": "1+1=", "greedy": "2" * 100, "score": 1.0}
    (folder / "spec.json").write_text(json.dumps(spec), encoding="utf-8")
    (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")
    (folder / "samples.jsonl").write_text(json.dumps(sample), encoding="utf-8")
    (folder / "log.txt").write_text("without_any_space" * 30, encoding="utf-8")


def browse(path: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """Load a page, and write it as it is then."""
    return subprocess.run(
        [
            str(BROWSER),
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--enable-logging=stderr",
            "--dump-dom",
            f"--user-data-dir={path.parent / 'profile'}",
            "--window-size=1400,2000",
            *flags,
            path.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )


@pytest.fixture(scope="module")
def answers(page: Path) -> dict[str, dict[str, Any]]:
    """Run the questions in copies of the page whose policy lets in just them, by their width.

    They are frames of another page: no window of Chromium is narrower than 500 points.
    """
    probe = f"parent.postMessage((() => {{{QUESTIONS}}})(), '*');"
    digest = base64.b64encode(hashlib.sha256(probe.encode()).digest()).decode()
    text = page.read_text("utf-8")
    text = text.replace("script-src ", f"script-src 'sha256-{digest}' ", 1)
    text = text.replace("</body>", f"<script>{probe}</script>\n</body>", 1)
    page.with_name("asked.html").write_text(text, encoding="utf-8")
    frames = [f'<iframe width="{n}" height="900" src="asked.html"></iframe>' for n in (1280, 390)]
    listen = """
        const found = {};
        addEventListener("message", (event) => {
          found[event.data.width] = event.data;
          document.title = "found " + JSON.stringify(found);
        });
    """
    both = page.with_name("both.html")
    both.write_text(f"<title></title><script>{listen}</script>{''.join(frames)}", encoding="utf-8")
    done = browse(both, "--virtual-time-budget=5000")
    said = re.search(r"<title>found (.*?)</title>", done.stdout, re.DOTALL)
    assert said is not None, done.stderr
    found: dict[str, dict[str, Any]] = json.loads(unescape(said[1]))
    return found


@pytest.fixture(scope="module")
def wide(answers: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What the page says where there is room."""
    return answers["1280"]


def test_nothing_is_written_to_the_console(page: Path) -> None:
    done = browse(page)
    assert "<button" in done.stdout  # the script ran
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []


def test_a_script_that_is_not_of_the_page_does_not_run(page: Path) -> None:
    text = page.read_text("utf-8")
    intruder = '<script>document.title = "in"</script><img src="x" onerror="document.title=1">'
    copy = page.with_name("intruder.html")
    copy.write_text(text.replace("</body>", f"{intruder}</body>"), encoding="utf-8")
    done = browse(copy)
    assert "mine&lt;/b&gt;: rlbench report</title>" in done.stdout
    assert "Content Security Policy" in done.stderr


def test_nothing_is_loaded(wide: dict[str, Any]) -> None:
    assert wide["loaded"] == []


def test_headings_go_down_one_step_at_a_time(wide: dict[str, Any]) -> None:
    assert wide["levels"][:2] == [1, 2]
    assert all(after <= before + 1 for before, after in pairwise(wide["levels"]))


def test_a_click_sorts_by_number_the_largest_first(wide: dict[str, Any]) -> None:
    falling = ["b", "c", LONG]
    assert wide["before"] == falling
    assert wide["score"] == [[falling, "descending"], [falling[::-1], "ascending"]]


def test_a_click_sorts_by_name_from_a_on(wide: dict[str, Any]) -> None:
    rising = [LONG, "b", "c"]
    assert wide["name"] == [[rising, "ascending"], [rising[::-1], "descending"]]


def test_what_has_no_value_is_last_both_ways(wide: dict[str, Any]) -> None:
    assert wide["gap"] == "b"  # of c, b and the long one
    assert wide["kl"] == [[["c", LONG, "b"], "descending"], [[LONG, "c", "b"], "ascending"]]


def test_heads_are_reached_by_the_keyboard(wide: dict[str, Any]) -> None:
    assert wide["focus"] == [True, "button", 0]


@pytest.mark.parametrize("width", [1280, 390])
def test_no_page_is_wider_than_its_window(width: int, answers: dict[str, dict[str, Any]]) -> None:
    """Tables and figures are scrolled inside of it; long names are broken."""
    found = answers[str(width)]
    assert found["outside"] == []
    assert found["scrolls"] <= width


def test_a_verdict_stays_in_sight_on_a_narrow_screen(answers: dict[str, dict[str, Any]]) -> None:
    """Where a table is scrolled, too."""
    assert answers["390"]["kept"] == [True, True]


def test_names_are_no_narrower_than_they_need_to_be(answers: dict[str, dict[str, Any]]) -> None:
    """Those of the second and third row are short; the first, of 150 letters, is broken."""
    for found in answers.values():
        assert sorted(found["lines"])[:2] == [1, 1]


def test_text_stands_out_from_its_ground(page: Path) -> None:
    """WCAG AA asks for 4.5 to 1, in light, in the dark and on paper."""
    style = re.search(r"<style>(.*?)</style>", page.read_text("utf-8"), re.DOTALL)
    assert style is not None
    schemes = re.findall(r":root \{(.*?)\}", style[1], re.DOTALL)
    assert len(schemes) == 3  # light, dark, paper
    for scheme in schemes:
        colours = dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6})", scheme))
        for name in ("ink", "quiet", "link", "better", "worse", "open"):
            for ground in ("paper", "tint"):
                assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground)


def contrast(one: str, other: str) -> float:
    """Contrast of two colours; see WCAG 2.2, "contrast ratio"."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
