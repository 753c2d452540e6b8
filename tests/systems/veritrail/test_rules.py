"""Sub-claims, evidence, verdicts and several answers: VeriTrail's rules, by hand and at random."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Mapping, Sequence

import dspy
import pytest

from spanlab.detection.claims import sub_claims
from spanlab.schema import Process, ProcessNode
from spanlab.systems.veritrail.entries import VeriTrailOptions
from spanlab.systems.veritrail.evidence import (
    ClaimRuling,
    EvidenceRuling,
    NodeSentence,
    SelectedEvidence,
    agreed,
    batches,
    chosen,
    fitting,
    largest,
    majority,
)
from spanlab.systems.veritrail.trace import TrailStep
from spanlab.systems.veritrail.trail import NOTHING_CHOSEN, RERUNS, TrailReader
from spanlab.systems.veritrail.walk import WalkVerdict, walk

# claim: (what each decomposition returns, attempts), (the parts, what was asked for)
PARTS: Mapping[str, tuple[Mapping[str, list[str]], int, tuple[str, ...], int]] = {
    "a claim that stays whole has no parts": ({"ab": ["ab"]}, 20, (), 1),
    "a claim that is only reworded has none": ({"ab": ["a b"]}, 20, (), 1),
    "parts are taken apart again until they stay whole": (
        {"abc": ["ab", "c"], "ab": ["a", "b"], "a": ["a"], "b": ["b"], "c": ["c"]},
        20,
        ("c", "a", "b"),
        5,
    ),
    "a part that was seen is skipped": (
        {"ab": ["a", "b"], "a": ["ab", "b"], "b": ["b"]},
        20,
        ("b",),
        3,
    ),
    "a part that returns itself among others stays whole": (
        {"ab": ["a", "b"], "a": ["a", "x"], "b": ["b"], "x": ["x"]},
        20,
        ("a", "b", "x"),
        4,
    ),
    "no more attempts are made than allowed": (
        {"ab": ["a", "b"], "a": ["a1", "a2"], "b": ["b1", "b2"]},
        2,
        ("b", "a1", "a2"),
        2,
    ),
}


@pytest.mark.parametrize(("says", "attempts", "parts", "asked"), PARTS.values(), ids=PARTS)
def test_a_claim_is_taken_apart(
    says: Mapping[str, list[str]], attempts: int, parts: tuple[str, ...], asked: int
) -> None:
    calls: list[str] = []

    async def decompose(claim: str) -> Sequence[str]:
        calls.append(claim)
        return says[claim]

    first = next(iter(says))
    found = asyncio.run(sub_claims(first, decompose=decompose, attempts=attempts))
    assert sorted(found) == sorted(parts)
    assert len(calls) == asked


def test_at_most_twenty_attempts_are_made() -> None:
    calls: list[str] = []

    async def endless(claim: str) -> Sequence[str]:
        calls.append(claim)
        return [f"{claim}0", f"{claim}1"]

    asyncio.run(sub_claims("x", decompose=endless))
    assert len(calls) == 20


FOUND = [
    NodeSentence("n", start, start + 2, text) for start, text in ((0, "A."), (3, "B."), (6, "C."))
]


def picked(*indices: int, summary: str = "said", unknown: int = 0) -> SelectedEvidence:
    return SelectedEvidence(tuple(FOUND[index] for index in indices), summary, unknown)


# what the model returned: which sentences that means, and how many ids nobody had given
RETURNED: Mapping[str, tuple[list[str], tuple[int, ...], int]] = {
    "all that were given": (["1", "2", "3"], (0, 1, 2), 0),
    "in any order and notation": (["[3]", "#1", "3."], (0, 2), 0),
    "ids that were not given": (["2", "4", "0", "99"], (1,), 3),
    "no ids": (["B.", "-1"], (), 1),
    "nothing": ([], (), 0),
}


@pytest.mark.parametrize(("returned", "known", "unknown"), RETURNED.values(), ids=RETURNED)
def test_ids_that_were_not_given_are_dropped_and_counted(
    returned: list[str], known: tuple[int, ...], unknown: int
) -> None:
    prediction = dspy.Prediction(chosen=returned, summary="said")
    summary = "said" if known else ""
    assert chosen(FOUND, prediction) == picked(*known, summary=summary, unknown=unknown)


def test_prompts_hold_so_many_sentences() -> None:
    assert [len(batch) for batch in batches(FOUND * 3, 4)] == [4, 4, 1]


AGREED: Mapping[str, tuple[list[tuple[int, ...]], int, tuple[int, ...]]] = {
    "two of three": ([(0, 1), (1,), (1, 2)], 2, (1,)),
    "one is enough": ([(0,), (2,), ()], 1, (0, 2)),
    "all must agree": ([(0, 1), (0, 1), (0,)], 3, (0,)),
    "nobody agrees": ([(0,), (1,), (2,)], 2, ()),
}


@pytest.mark.parametrize(("answers", "least", "kept"), AGREED.values(), ids=AGREED)
def test_a_sentence_counts_if_enough_answers_chose_it(
    answers: list[tuple[int, ...]], least: int, kept: tuple[int, ...]
) -> None:
    said = [picked(*indices, summary=str(indices), unknown=1) for indices in answers]
    found = agreed(FOUND, said, least)
    assert found.sentences == tuple(FOUND[index] for index in kept)
    assert found.unknown == len(answers)
    assert bool(found.summary) is bool(kept)


YES: WalkVerdict = "supported"
NO: WalkVerdict = "not-supported"
MAYBE: WalkVerdict = "inconclusive"
MAJORITIES: Mapping[str, tuple[list[WalkVerdict], int, WalkVerdict, float | None]] = {
    "one answer is taken as it is": ([YES], 1, YES, None),
    "most": ([YES, NO, YES], 2, YES, 2 / 3),
    "too few agree": ([YES, NO, YES], 3, MAYBE, 2 / 3),
    "a tie": ([YES, NO], 1, MAYBE, 1 / 2),
    "all against": ([NO, NO, NO], 2, NO, 0.0),
    "three ways": ([YES, NO, MAYBE], 1, MAYBE, 1 / 3),
}


@pytest.mark.parametrize(
    ("answers", "least", "verdict", "support"), MAJORITIES.values(), ids=MAJORITIES
)
def test_a_verdict_passes_if_enough_answers_give_it(
    answers: list[WalkVerdict], least: int, verdict: WalkVerdict, support: float | None
) -> None:
    found = majority([EvidenceRuling(reason=each, verdict=each) for each in answers], least)
    assert (found.verdict, found.support) == (verdict, support)


# sizes of selections, most sentences together: the summaries and sizes of what is kept
LARGEST: Mapping[str, tuple[list[int], int, list[tuple[str, int]]]] = {
    "all fit": ([2, 3], 5, [("0", 2), ("1", 3)]),
    "two smaller ones hold more than the largest": ([15, 12, 8], 20, [("1", 12), ("2", 8)]),
    "a part fills the room that whole ones leave": ([9, 4], 5, [("A.", 1), ("1", 4)]),
    "none fits as a whole": ([9, 7], 3, [("A. A. A.", 3)]),
}


@pytest.mark.parametrize(("sizes", "most", "kept"), LARGEST.values(), ids=LARGEST)
def test_the_largest_part_that_fits_is_kept(
    sizes: list[int], most: int, kept: list[tuple[str, int]]
) -> None:
    given = [SelectedEvidence((FOUND[0],) * size, f"{place}") for place, size in enumerate(sizes)]
    assert [(each.summary, len(each.sentences)) for each in largest(given, most)] == kept


# texts in tokens of four letters, what was chosen of them, room: shown whole, by a part, left out
FITTING: Mapping[str, tuple[list[int], list[int], float, str]] = {
    "all fit": ([3, 5], [1, 2], 8, "WW"),
    "without a limit": ([3, 5], [1, 2], math.inf, "WW"),
    "the shorter one is whole": ([5, 3], [1, 1], 4, "PW"),
    "each by its part": ([9, 9], [2, 2], 4, "PP"),
    "not even all parts fit: the longest is left out": ([9, 9, 9], [2, 4, 1], 3, "P-P"),
    "nothing fits": ([9], [5], 4, "-"),
}


@pytest.mark.parametrize(("sizes", "parts", "room", "shown"), FITTING.values(), ids=FITTING)
def test_texts_that_do_not_fit_are_shown_by_what_was_chosen_of_them(
    sizes: list[int], parts: list[int], room: float, shown: str
) -> None:
    whole = {str(place): "W___" * size for place, size in enumerate(sizes)}
    chosen = {str(place): "P___" * size for place, size in enumerate(parts)}
    found = fitting(whole, chosen, room)
    assert "".join(found.shown.get(name, "-")[0] for name in whole) == shown
    assert (len(found.cut), len(found.left_out)) == (shown.count("P"), shown.count("-"))
    assert (found.remark(room) is None) is (shown in {"W", "WW"})


class Scripted:
    """Chooses sentences by their words and judges by the number of the round."""

    def __init__(
        self, words: Sequence[str], verdicts: Sequence[WalkVerdict] = (), unknown: int = 0
    ) -> None:
        self.words, self.verdicts, self.unknown = words, list(verdicts), unknown
        self.shown: list[tuple[NodeSentence, ...]] = []
        self.judged: list[tuple[str, ...]] = []

    async def choose(self, found: Sequence[NodeSentence]) -> SelectedEvidence:
        self.shown.append(tuple(found))
        kept = tuple(each for each in found if any(word in each.text for word in self.words))
        said = f"summary of {', '.join(each.text for each in kept)}" if kept else ""
        return SelectedEvidence(kept, said, self.unknown)

    async def rule(self, evidence: Sequence[str]) -> ClaimRuling:
        self.judged.append(tuple(evidence))
        return ClaimRuling(self.verdicts.pop(0) if self.verdicts else YES, "so")


# Two sources, of which the answer read one itself, and a summary of the other.
SMALL = Process(
    nodes=(
        ProcessNode(id="a", text="Yes one. Other one."),
        ProcessNode(id="b", text="Yes two. Yes three. Yes four."),
        ProcessNode(id="A", text="Yes five. Yes six. Other two.", sources=("a",)),
        ProcessNode(id="end", text="x", sources=("A", "b")),
    )
)


def trailed(asking: Scripted, process: Process = SMALL, **options: int) -> tuple[TrailStep, ...]:
    trail = TrailReader(asking, process, "en", VeriTrailOptions.model_validate(options))
    found = asyncio.run(walk(process, select=trail.select, judge=trail.judge))
    steps = trail.steps(found.rounds, 0)
    return tuple(step for step in steps if isinstance(step, TrailStep))


def test_roots_are_judged_by_their_text_also_later_and_others_by_their_summary() -> None:
    asking = Scripted(["Yes"])
    trailed(asking)
    assert asking.judged == [
        ("Yes two. Yes three. Yes four.", "summary of Yes five., Yes six."),
        ("Yes one. Other one.", "Yes two. Yes three. Yes four."),
    ]


def test_roots_have_prompts_of_their_own() -> None:
    asking = Scripted(["Yes"])
    trailed(asking, sentences=2, root_sentences=1)
    assert sorted(len(shown) for shown in asking.shown) == [1, 1, 1, 1, 1, 1, 2]
    assert all(len({each.node for each in shown}) == 1 for shown in asking.shown)


def test_without_evidence_nothing_is_judged() -> None:
    asking = Scripted(["nowhere"])
    (step,) = trailed(asking)
    assert (step.verdict, step.reason, asking.judged) == (NO, NOTHING_CHOSEN, [])


def test_too_much_is_selected_from_again_and_then_cut() -> None:
    asking = Scripted(["five", "six"])
    first, *_ = trailed(asking, judged=1)
    # Each time all is chosen again, so that after the last time the beginning has to do.
    again = [shown for shown in asking.shown if {each.node for each in shown} == {"A"}]
    assert [len(shown) for shown in again] == [3] + [2] * RERUNS
    assert [quote.text for quote in first.quotes] == ["Yes five."]
    assert (asking.judged[0], first.verdict) == (("Yes five.",), YES)


def test_a_claim_that_one_long_text_states_is_judged_on_as_much_as_fits() -> None:
    text = " ".join(f"Yes {number}." for number in range(260))
    nodes = (
        ProcessNode(id="a", text="Yes."),
        ProcessNode(id="A", text=text, sources=("a",)),
        ProcessNode(id="end", text="x", sources=("A",)),
    )
    first, _ = trailed(asking := Scripted(["Yes"]), Process(nodes=nodes), sentences=300)
    assert asking.judged[0] == (" ".join(f"Yes {number}." for number in range(200)),)
    assert (len(first.quotes), first.verdict) == (200, YES)


def test_roots_are_limited_only_if_asked_for() -> None:
    asking = Scripted(["Yes"])
    trailed(asking, judged_roots=2)
    assert asking.judged[0] == ("Yes two. Yes three.", "summary of Yes five., Yes six.")


def test_ids_that_nobody_gave_are_counted_in_the_trace() -> None:
    # One prompt for the summary and one for the source; then one for the other source.
    assert [step.dropped for step in trailed(Scripted(["Yes"], unknown=2))] == [4, 2]


def random_process(rng: random.Random) -> Process:
    texts = ("Yes.", "Other one.", "Yes — ünïcode 🇳🇴!", "\u3002はい。", "No end", "  \n")
    nodes: list[ProcessNode] = []
    for number in range(rng.randint(1, 14)):
        text = " ".join(rng.choices(texts, k=rng.randint(0, 6)))
        sources = tuple(each.id for each in nodes if rng.random() < 0.3)
        nodes.append(ProcessNode(id=f"n{number}", text=text, sources=sources))
    read = {source for node in nodes for source in node.sources}
    loose = tuple(node.id for node in nodes if node.id not in read)
    return Process(nodes=(*nodes, ProcessNode(id="end", text="x", sources=loose)))


@pytest.mark.parametrize("seed", range(5))
def test_every_quote_stands_in_its_node_and_none_is_shown_in_two_rounds(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(40):
        process = random_process(rng)
        asking = Scripted(
            rng.sample(["Yes", "Other", "は", "end", "ï"], k=rng.randint(0, 4)),
            [rng.choice((YES, NO, MAYBE)) for _ in range(20)],
        )
        steps = trailed(asking, process, sentences=rng.randint(1, 5), q=rng.randint(1, 3))
        assert len(steps) <= len(process.nodes), "rounds end"
        checked = [node for step in steps for node in step.checked]
        assert len(checked) == len(set(checked)), "no node is selected from twice"
        shown = [sentence for found in asking.shown for sentence in found]
        assert len(shown) == len(set(shown))
        for step in steps:
            for quote in step.quotes:
                assert quote.node in step.checked
                text = process.by_id[quote.node].text
                assert text[quote.start : quote.end] == quote.text
