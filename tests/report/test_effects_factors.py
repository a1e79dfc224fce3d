"""What is a factor: columns that go together, what is averaged over, tasks, simple effects."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from rlbench.errors import NothingSelected, UsageError
from rlbench.report.cells.cell import cells
from rlbench.report.effects.contrasts import TaskEffects, effects
from rlbench.report.effects.table import effects_table

from .made_up import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlbench.grid.store import Record

LUCK = (0.03, -0.02, 0.01, -0.04, 0.02)
OWN = (0.004, -0.003, 0.001, 0.002, -0.004)


def cell(mean: float, turn: int = 0, **labels: Any) -> list[Record]:
    """Five seeds of one cell; `turn` keeps two cells from having the same noise."""
    return [
        record(s, mean + LUCK[s] + OWN[(s + turn) % 5] * (1 + turn), **labels) for s in range(5)
    ]


def of(made: Sequence[Record], *wanted: str, **more: Any) -> TaskEffects:
    (one,) = effects(cells(made), wanted, **more).tasks
    return one


def estimates(found: TaskEffects, name: str, within: str = "") -> dict[str, float]:
    """Estimates of an effect, by its contrast."""
    return {
        " ".join("-".join(pair) for pair in one.levels) + (f"@{one.at}" if one.at else ""): (
            one.judgement.difference.interval.mid
        )
        for effect in found.effects
        if (" x ".join(effect.factors), effect.within) == (name, within)
        for one in effect.contrasts
        if one.judgement.difference
    }


def text_of(made: Sequence[Record], *wanted: str, **more: Any) -> str:
    return " ".join(effects_table(effects(cells(made), wanted, **more)).split())


# a, c 0.8   a, p 0.5   b, c 0.6   b, p 0.1, at two rates: the larger one adds 0.05
MEANS = {("a", "c"): 0.8, ("a", "p"): 0.5, ("b", "c"): 0.6, ("b", "p"): 0.1}
CROSSED = [
    run
    for turn, (((e, k), mean), (lr, more)) in enumerate(
        product(MEANS.items(), ((1e-3, 0.0), (1e-2, 0.05)))
    )
    for run in cell(mean + more, turn, estimator=e, loss=k, settings={"lr": lr})
]


# averaging


def test_what_is_no_wanted_factor_is_averaged_over() -> None:
    found = of(CROSSED, "loss")
    assert [effect.factors for effect in found.effects] == [("loss",)]
    # (0.8 + 0.6) / 2 - (0.5 + 0.1) / 2
    assert estimates(found, "loss") == {"c-p": pytest.approx(0.4)}
    assert (found.grid.averaged, found.grid.partners) == (("estimator", "lr"), 4)
    assert "over estimator, lr: 4 cells for each one here." in text_of(CROSSED, "loss")


def test_averaging_changes_no_main_effect_and_no_interaction() -> None:
    every, some = of(CROSSED), of(CROSSED, "loss", "estimator")
    for name in ("loss", "estimator"):
        assert estimates(every, name) == pytest.approx(estimates(some, name))
    # (a - b) at c less at p: 0.2 - 0.4
    assert estimates(every, "estimator x loss") == {"a-b c-p": pytest.approx(-0.2)}
    assert estimates(some, "loss x estimator") == {"c-p a-b": pytest.approx(-0.2)}


def test_a_cell_without_its_like_is_in_no_average_and_named() -> None:
    extra = cell(0.99, estimator="z", loss="c", settings={"lr": 1e-3})
    found = of([*CROSSED, *extra], "loss")
    assert estimates(found, "loss") == {"c-p": pytest.approx(0.4)}
    assert found.grid.uneven == ("z, c, lr=0.001",)
    assert "for want of their like everywhere: z, c, lr=0.001." in text_of(
        [*CROSSED, *extra], "loss"
    )


def test_what_cannot_be_averaged_is_refused() -> None:
    made = [*cell(0.5, estimator="a", loss="c"), *cell(0.5, estimator="b", loss="c")]
    made += [*cell(0.5, estimator="d", loss="p"), *cell(0.5, estimator="e", loss="p")]
    with pytest.raises(UsageError, match="--factor loss: can't be averaged over estimator"):
        of(made, "loss")


# columns that change together


def test_columns_that_change_together_are_one_factor() -> None:
    made = [
        *cell(0.5, estimator="a", loss="c", settings={"lr": 1e-3}),
        *cell(0.4, 1, estimator="a", loss="p", settings={"lr": 1e-2}),
        *cell(0.6, 2, estimator="b", loss="c", settings={"lr": 1e-3}),
        *cell(0.5, 3, estimator="b", loss="p", settings={"lr": 1e-2}),
    ]
    for wanted in ((), ("estimator", "loss"), ("estimator", "lr")):
        found = of(made, *wanted)
        assert [factor.name for factor in found.grid.factors] == ["estimator", "loss+lr"]
        assert found.grid.factors[1].levels == ("c+lr=0.001", "p+lr=0.01")
        assert found.grid.holes == []
    assert estimates(of(made, "lr"), "loss+lr") == {
        "c+lr=0.001-p+lr=0.01": pytest.approx(0.1, abs=1e-3)
    }


# tasks

TASKS = [
    run
    for turn, (e, t, mean) in enumerate(
        (("a", "t1", 0.8), ("b", "t1", 0.6), ("a", "t2", 3.0), ("b", "t2", 2.0))
    )
    for run in cell(mean, turn, estimator=e, task=t)
]


def test_the_task_can_be_a_factor() -> None:
    found = of(TASKS, across_tasks=True)
    assert (found.grid.task, [f.name for f in found.grid.factors]) == ("", ["estimator", "task"])
    # (0.8 + 3) / 2 - (0.6 + 2) / 2, and 1 - 0.2
    assert estimates(found, "estimator") == {"a-b": pytest.approx(0.6)}
    assert estimates(found, "estimator x task") == {"a-b t2-t1": pytest.approx(0.8)}


def test_tasks_are_put_on_one_scale() -> None:
    found = of(TASKS, across_tasks=True, scales={"t1": (0.0, 1.0), "t2": (1.0, 5.0)})
    # 0.8 - 0.6 = 0.2 and (3 - 2) / 4 = 0.25
    assert estimates(found, "estimator") == {"a-b": pytest.approx(0.225)}
    assert "on normalised score, seeds 0-4" in text_of(
        TASKS, across_tasks=True, scales={"t1": (0.0, 1.0), "t2": (1.0, 5.0)}
    )


def test_a_task_without_a_scale_is_refused() -> None:
    with pytest.raises(UsageError, match="unknown task of the results"):
        of(TASKS, across_tasks=True, scales={"t1": (0.0, 1.0)})


def test_tasks_of_two_directions_need_a_scale() -> None:
    made = [*TASKS]
    for e, mean in (("a", 30.0), ("b", 40.0)):
        made += cell(mean, estimator=e, task="t3", spec={"direction": "lower"})
    with pytest.raises(UsageError, match="--normalise FILE puts both on one scale"):
        of(made, across_tasks=True)
    scales = {"t1": (0.0, 1.0), "t2": (0.0, 10.0), "t3": (100.0, 0.0)}
    # 0.2, 0.1, and a is better on t3: 0.7 - 0.6
    found = of(made, across_tasks=True, scales=scales)
    assert estimates(found, "estimator") == {"a-b": pytest.approx(0.4 / 3)}
    assert found.grid.metric.higher


def test_on_one_scale_more_is_better_where_less_was() -> None:
    made = [
        run
        for turn, (e, t, mean) in enumerate(
            (("a", "t1", 8.0), ("b", "t1", 6.0), ("a", "t2", 30.0), ("b", "t2", 20.0))
        )
        for run in cell(mean, turn, estimator=e, task=t, spec={"direction": "lower"})
    ]
    found = of(made, across_tasks=True, scales={"t1": (10.0, 0.0), "t2": (100.0, 0.0)})
    # b is better: 0.4 - 0.2 and 0.8 - 0.7
    assert estimates(found, "estimator") == {"b-a": pytest.approx(0.15)}
    (one,) = found.effects[0].contrasts
    assert one.judgement.verdict == "+"


def test_the_task_as_a_factor_has_to_be_asked_for() -> None:
    with pytest.raises(UsageError, match="with --across-tasks the task is a factor"):
        of(TASKS, "task")


def test_contrasts_of_all_tasks_are_corrected_together() -> None:
    found = effects(cells(TASKS))
    alone = effects(cells([run for run in TASKS if "t2" in run.run_id]))
    assert (found.family.size, alone.family.size) == (2, 1)
    p, of_one = (one.tasks[-1].effects[0].contrasts[0].judgement.p or 0.0 for one in (found, alone))
    assert p == pytest.approx(2 * of_one)  # the smaller of two by Holm


def test_contrasts_have_one_direction_in_all_tasks() -> None:
    # a, b, c are first, second, third in t1 and second, first, third in t2 and t3
    made = []
    for t, means in (("t1", (0.9, 0.8, 0.1)), ("t2", (0.6, 0.7, 0.5)), ("t3", (0.6, 0.7, 0.5))):
        for turn, (e, mean) in enumerate(zip("abc", means, strict=True)):
            made += cell(mean, turn, estimator=e, task=t)
    found = effects(cells(made)).tasks
    for one in found:
        assert list(estimates(one, "estimator")) == ["b-a", "b-c", "a-c"]
    assert estimates(found[0], "estimator")["b-a"] == pytest.approx(-0.1)


def test_no_task_is_a_best_partner() -> None:
    made = []
    for turn, (e, k, t) in enumerate(product("ab", "cp", ("t1", "t2"))):
        made += cell(
            0.5 + 0.1 * (e + k == "ap") + 0.2 * (t == "t1"), turn, estimator=e, loss=k, task=t
        )
    found = of(made, across_tasks=True).partners
    assert [(one.factor, one.others) for one in found] == [
        ("estimator", ("loss",)),
        ("loss", ("estimator",)),
    ]
    a = next(one for one in found[0].levels if one.level == "a")
    # p at a, over both tasks: 0.6 + 0.1
    assert (a.chosen, a.interval.mid) == ((("p",), ("p",)), pytest.approx(0.7))


def test_a_task_without_effects_is_skipped_and_named() -> None:
    made = [*TASKS, *cell(0.5, estimator="a", task="t3")]
    assert [one.grid.task for one in effects(cells(made)).tasks] == ["t1", "t2"]
    assert "task t3: one cell only" in text_of(made)
    with pytest.raises(NothingSelected, match=r"task t3.*task t4"):
        effects(cells([*made[-5:], *cell(0.5, estimator="a", task="t4")]))


# which effects


def test_simple_effects_are_those_at_each_level_of_the_other_factor() -> None:
    found = of(CROSSED, "estimator", "loss", simple=True)
    assert estimates(found, "estimator", "loss") == {
        "a-b@c": pytest.approx(0.2),
        "a-b@p": pytest.approx(0.4),
    }
    assert estimates(found, "loss", "estimator") == {
        "c-p@a": pytest.approx(0.3),
        "c-p@b": pytest.approx(0.5),
    }
    assert "loss within estimator" in text_of(CROSSED, simple=True)


def test_columns_of_the_crossed_table_stand_under_their_names() -> None:
    made = []
    for turn, ((e, k), mean) in enumerate(MEANS.items()):  # the best ones are last in the alphabet
        made += cell(mean, turn, estimator={"a": "z"}.get(e, e), loss={"c": "y"}.get(k, k))
    lines = effects_table(effects(cells(made))).splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("estimator \\ loss"))
    assert lines[at].split() == ["estimator", "\\", "loss", "y", "p", "all"]
    row = [part for part in lines[at + 2].split() if "±" not in part]
    assert row[0] == "z"
    assert [float(part) for part in row[1:]] == pytest.approx([0.8, 0.5, 0.65], abs=0.006)


def test_it_is_said_that_interactions_of_three_are_not_looked_at() -> None:
    assert "of three factors or more are not looked at" in text_of(CROSSED)
    assert "of three factors" not in text_of(CROSSED, "loss", "estimator")


def test_simple_effects_are_in_the_family_only_where_they_are_asked_for() -> None:
    sizes = [
        effects(cells(CROSSED), **more).family.size
        for more in ({}, {"simple": True}, {"interactions": False})
    ]
    # 3 main effects, 3 interactions; 3 * 2 ordered pairs of factors with 2 levels each
    assert sizes == [3 + 3, 3 + 3 + 12, 3]


def test_two_factors_are_crossed_in_a_table_with_their_means() -> None:
    lines = effects_table(effects(cells(CROSSED), ["estimator", "loss"])).splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("estimator \\ loss"))
    # the luck of seeds has mean 0; rates add 0.025 to all
    rows = [[part for part in line.split() if "±" not in part] for line in lines[at + 2 : at + 5]]
    assert [row[0] for row in rows] == ["a", "b", "all"]
    assert [[float(x) for x in row[1:]] for row in rows] == [
        pytest.approx([0.825, 0.525, 0.675], abs=0.006),
        pytest.approx([0.625, 0.125, 0.375], abs=0.006),
        pytest.approx([0.725, 0.325], abs=0.006),
    ]


def test_raw_scores_of_tasks_on_other_scales_are_not_averaged_silently() -> None:
    scores = {
        ("a", "t1"): [0.2, 0.3, 0.4],
        ("b", "t1"): [0.1, 0.2, 0.1],
        ("a", "t2"): [200.0, 100.0, 150.0],
        ("b", "t2"): [110.0, 130.0, 190.0],
    }
    made = [
        record(seed, score, estimator=e, task=t)
        for (e, t), values in scores.items()
        for seed, score in enumerate(values)
    ]
    said = text_of(made, across_tasks=True)
    assert (
        "Scores of tasks are averaged as they are: they differ by up to 100 in t2 and by up to 0.3 "
        "in t1, so that the former decides. --normalise FILE puts all on one scale."
    ) in said
    scales = {"t1": (0.0, 1.0), "t2": (0.0, 200.0)}
    for apart in (
        text_of(made, across_tasks=True, scales=scales),  # one scale
        text_of(made),  # each task for itself
    ):
        assert "averaged as they are" not in apart


def test_what_an_effect_would_show_alone_is_said_beside_nothing_shown() -> None:
    # 3 contrasts of estimators, and 8 of losses that have a spread; those of both are all equal
    means = {"a": (0.05, 0.03, 0.02, 0.04, 0.01), "b": (0.0,) * 5, "c": (0.02, 0, 0.03, 0.01, 0.02)}
    made = [
        record(seed, 0.5 + value + (0.01 * ((seed * n) % 3)), estimator=e, loss=k)
        for e, values in means.items()
        for n, k in enumerate("uvwxy")
        for seed, value in enumerate(values)
    ]
    found = of(made)
    estimator = found.effects[0]
    assert estimator.p is not None
    assert estimator.p < 0.05
    assert all(one.judgement.verdict == "?" for one in estimator.contrasts)
    assert f" over all 11 contrasts, = {estimator.p:.3f} over its own 3 alone)" in text_of(made)
