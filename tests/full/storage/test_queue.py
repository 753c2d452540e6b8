"""Queues: random queries against sorting all records, and what a list shows of an item."""

from __future__ import annotations

from random_queues import ask

from spanlab.storage import Store


def test_queues_hold_what_sorting_all_records_gives_whatever_people_do(store: Store) -> None:
    answers = list(ask(store, 0, n_changes=10, n_queries=5))
    for question, expected, given in answers:
        assert given == expected, question
    assert sum(bool(expected) for _, expected, _ in answers) > len(answers) / 3
