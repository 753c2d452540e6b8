"""What mapping alone costs: a perfect model's quotes and corrections on real labels."""

from __future__ import annotations

from pathlib import Path

import pytest
from perfect import (
    ORDERS,
    VARIANTS,
    Answer,
    Order,
    Variant,
    answers,
    correction,
    extraction,
    macro,
    repeated,
)


@pytest.fixture(scope="module")
def items(shared: Path) -> list[Answer]:
    return answers(shared)


def test_a_perfect_extractor_loses_next_to_nothing(items: list[Answer]) -> None:
    assert macro(extraction(items, "in order")) > 0.995


@pytest.mark.parametrize("order", ORDERS)
def test_the_order_of_quotes_matters_only_where_words_repeat(
    items: list[Answer], order: Order
) -> None:
    assert macro(extraction(items, order)) > 0.99


def test_with_the_words_before_them_quotes_find_their_places_in_any_order(
    items: list[Answer],
) -> None:
    assert macro(extraction(items, "shuffled, words before")) > 0.999


def test_quotes_given_once_suffice_where_every_span_has_its_own_words(
    items: list[Answer],
) -> None:
    distinct = [item for item in items if not repeated(item)]

    assert macro(extraction(distinct, "each text once")) > 0.995


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_perfect_correction_maps_back_in_every_language(
    items: list[Answer], variant: Variant
) -> None:
    scores = correction(items, variant, "word")

    assert macro(scores) > 0.97
    assert scores["zh"] > 0.95
    assert min(scores.values()) > 0.95


@pytest.mark.parametrize("variant", VARIANTS)
def test_marking_characters_instead_of_words_costs_little(
    items: list[Answer], variant: Variant
) -> None:
    scores = correction(items, variant, "char")

    assert macro(scores) > 0.97
    assert scores["zh"] > 0.95
