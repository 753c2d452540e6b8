"""Looking for garbage rarely lasts as long as runs do, and no longer."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from spanlab.base.runtime import rarely_collected


@pytest.fixture(autouse=True)
def usual() -> Iterator[tuple[int, int, int]]:
    """Whatever a test does is undone."""
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield (700, 10, 10)
    gc.set_threshold(*before)


def test_it_is_as_before_after_the_last_of_several_runs() -> None:
    first, second = rarely_collected(), rarely_collected()
    with first:
        assert gc.get_threshold() == (10_000, 10, 10)
        with second:
            assert gc.get_threshold() == (10_000, 10, 10)
        assert gc.get_threshold() == (10_000, 10, 10)
    assert gc.get_threshold() == (700, 10, 10)


def test_runs_may_end_in_the_order_in_which_they_began() -> None:
    first, second = rarely_collected(), rarely_collected()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert gc.get_threshold() == (10_000, 10, 10)
    second.__exit__(None, None, None)
    assert gc.get_threshold() == (700, 10, 10)


def test_a_run_that_breaks_leaves_it_as_it_was() -> None:
    with pytest.raises(RuntimeError), rarely_collected():
        raise RuntimeError
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("chosen", [0, 50_000], ids=["never", "more-rarely"])
def test_whoever_wants_it_more_rarely_still_gets_that(chosen: int) -> None:
    gc.set_threshold(chosen, 10, 10)
    with rarely_collected():
        assert gc.get_threshold()[0] == chosen
    assert gc.get_threshold()[0] == chosen
