"""The protocol by hand: every type of error, and every conflict of order."""

from __future__ import annotations

from itertools import combinations

import pytest

from spanlab.systems.safe.steps import ErrorFamily, ErrorType, StepKind, first_error

A, L, F = StepKind.ATTRIBUTION, StepKind.LOGICAL, StepKind.FINAL_ANSWER
OVER, OFF = ErrorType.OVERTHINKING, ErrorType.OFF_TOPIC
REDUNDANT, INEFFICIENT = ErrorType.REDUNDANCY, ErrorType.INEFFICIENCY
CONTRADICTORY, MISSING = ErrorType.CONTRADICTORY, ErrorType.MISSING_EVIDENCE
UNSUPPORTED, MISS = ErrorType.UNSUPPORTED, ErrorType.INFORMATION_MISS
PREMATURE, FALLACY = ErrorType.PREMATURE_ATTRIBUTION, ErrorType.LOGICAL_FALLACY
WRONG = ErrorType.WRONG_CONCLUSION

# In the order of the evaluation protocol: necessity, relevance, novelty, efficiency; then truth.
BY_HAND = {
    A: [OVER, OFF, REDUNDANT, INEFFICIENT, CONTRADICTORY, MISSING, UNSUPPORTED, MISS, PREMATURE],
    L: [OVER, OFF, REDUNDANT, INEFFICIENT, FALLACY],
    F: [WRONG],
}


@pytest.mark.parametrize("kind", StepKind)
def test_of_any_two_errors_the_first_of_the_protocol_is_reported(kind: StepKind) -> None:
    order = BY_HAND[kind]
    for error in order:
        assert first_error(kind, {error}) is error
    for first, second in combinations(order, 2):
        assert first_error(kind, (second, first)) is first
    assert first_error(kind, set(order)) is order[0]
    assert first_error(kind, ()) is None


@pytest.mark.parametrize(
    ("kind", "found", "reported"),
    [
        pytest.param(A, {REDUNDANT, CONTRADICTORY}, REDUNDANT, id="useless-and-false"),
        pytest.param(A, {INEFFICIENT, UNSUPPORTED}, INEFFICIENT, id="plans-and-is-unsupported"),
        pytest.param(L, {OFF, FALLACY}, OFF, id="off-topic-and-unsound"),
        pytest.param(
            A, {CONTRADICTORY, PREMATURE}, CONTRADICTORY, id="contradictory-and-premature"
        ),
        pytest.param(A, {CONTRADICTORY, UNSUPPORTED}, CONTRADICTORY, id="contradicted-and-absent"),
        pytest.param(A, {UNSUPPORTED, MISSING}, MISSING, id="absent-everywhere"),
        pytest.param(A, {PREMATURE, MISS}, MISS, id="missed-and-premature"),
        pytest.param(L, {CONTRADICTORY}, FALLACY, id="a-conclusion-against-a-passage"),
        pytest.param(L, {UNSUPPORTED, OVER}, OVER, id="a-needless-conclusion-from-nowhere"),
        pytest.param(A, {FALLACY}, UNSUPPORTED, id="a-fact-that-is-a-wrong-conclusion"),
        pytest.param(A, {WRONG}, UNSUPPORTED, id="a-fact-is-no-final-answer"),
        pytest.param(F, {CONTRADICTORY}, WRONG, id="a-final-answer-against-a-passage"),
        pytest.param(F, {FALLACY, OVER}, WRONG, id="a-final-answer-that-does-not-follow"),
        pytest.param(F, {OVER, REDUNDANT}, None, id="a-final-answer-is-never-useless"),
    ],
)
def test_conflicts_end_as_the_protocol_says(
    kind: StepKind, found: set[ErrorType], reported: ErrorType | None
) -> None:
    assert first_error(kind, found) is reported


def test_every_error_has_its_family() -> None:
    families = {
        ErrorFamily.PROCEDURAL: {OVER, OFF, REDUNDANT, INEFFICIENT},
        ErrorFamily.ATTRIBUTION: {CONTRADICTORY, MISSING, UNSUPPORTED, MISS, PREMATURE},
        ErrorFamily.LOGICAL: {FALLACY},
        ErrorFamily.FINAL_ANSWER: {WRONG},
    }
    for family, errors in families.items():
        assert {error for error in ErrorType if error.family is family} == errors
