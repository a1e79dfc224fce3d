import pytest

from rlbench.training.schedule import factor
from rlbench.training.settings import Settings


def course(**chosen: object) -> list[float]:
    settings = Settings.from_values(chosen)
    return [factor(settings, update) for update in range(1, settings.updates + 1)]


def test_constant_is_constant() -> None:
    assert course(updates=3) == [1.0, 1.0, 1.0]


def test_linear_falls_towards_zero_after_the_last_update() -> None:
    assert course(updates=4, lr_schedule="linear") == pytest.approx([1, 0.75, 0.5, 0.25])


def test_cosine_falls_towards_zero_after_the_last_update() -> None:
    # (1 + cos(pi k / 4)) / 2 for k = 0, 1, 2, 3
    assert course(updates=4, lr_schedule="cosine") == pytest.approx(
        [1, 0.853553, 0.5, 0.146447], abs=1e-6
    )


def test_the_warm_up_rises_and_the_schedule_takes_the_rest() -> None:
    found = course(updates=5, warmup=3, lr_schedule="linear")
    assert found == pytest.approx([0.25, 0.5, 0.75, 1.0, 0.5])
