"""Stop words and names of months, gathered at training and kept in the model."""

from __future__ import annotations

import pytest

from spanlab.systems.offline.lexicon import EMPTY, Lexicon, gather
from spanlab.systems.offline.model import load

MUSHROOM = ("ar", "ca", "cs", "de", "en", "es", "eu", "fa", "fi", "fr", "hi", "it", "sv", "zh")


def test_the_shipped_model_knows_what_the_libraries_know() -> None:
    assert load().background.lexicon == gather()


@pytest.mark.parametrize("lang", MUSHROOM)
def test_every_language_of_the_task_has_stop_words(lang: str) -> None:
    assert len(load().background.stop(lang)) > 40


def test_a_language_without_lists_has_no_stop_words_but_foreign_months() -> None:
    assert load().background.stop("und") == frozenset()
    assert load().background.months("und").number("marzo") == 3
    assert EMPTY.month("de").number("april") is None


@pytest.mark.parametrize(
    ("lang", "form", "month"),
    [
        pytest.param("eu", "martxoaren", 3, id="ending"),
        pytest.param("cs", "breznu", 3, id="other-ending"),
        pytest.param("en", "marching", None, id="english-takes-no-ending"),
        pytest.param("cs", "listopad", 11, id="cs-listopad"),
        pytest.param("hr", "listopad", 10, id="hr-listopad"),
        pytest.param("de", "listopad", None, id="ambiguous-abroad"),
        pytest.param("zh", "三", None, id="no-word"),
    ],
)
def test_a_month_is_known_by_its_name(lang: str, form: str, month: int | None) -> None:
    assert load().background.months(lang).number(form) == month


def test_a_lexicon_comes_back_from_its_bytes() -> None:
    lexicon = Lexicon({"de": "am der"}, {"de": "marz 3"})
    assert Lexicon.parse(lexicon.dump()) == lexicon
