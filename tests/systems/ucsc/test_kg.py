"""`ucsc-kg`: facts of the answer are checked against a graph of the passages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from detector_cases import ANSWER, TOWER, Make, detect
from prompts import prompt_of

from spanlab.base.errors import InputError
from spanlab.models.programs import apply_program
from spanlab.schema import FactStep, RelationStep, RemarkStep, Status, TunedPredictor
from spanlab.systems.ucsc import MAX_ROUNDS
from spanlab.systems.ucsc.facts import FactVerifier
from spanlab.testing import ModelRequest, ModelServer, ScriptedReply, fail, say_fields
from spanlab.text.labels import hard_of

BUILT = "The tower was built in 1989."
BUILDER = "The tower was built by Ada Smith."
PLACE = "The tower is in Paris."
RELATIONS = [
    {"subject": "Tower", "relation": "built in", "object": "1889"},
    {"subject": "Tower", "relation": "built by", "object": "Gustave Eiffel"},
    {"subject": "Tower", "relation": "located in", "object": "Paris"},
    {"subject": "Tower", "relation": "symbol of", "object": "Paris"},
]


class Verifier:
    """Answers the four prompts of the system; facts about years and builders are false."""

    def __init__(self, **changes: Any) -> None:
        self.relations = changes.get("relations", RELATIONS)
        self.facts = changes.get(
            "facts", [{"fact": fact, "sentence": ANSWER} for fact in (BUILT, BUILDER, PLACE)]
        )
        self.rounds_wanted = changes.get("rounds_wanted", 1)
        self.checks: list[str] = []

    def __call__(self, ask: ModelRequest) -> ScriptedReply:
        prompt = prompt_of(ask)
        if "`[[ ## relations ## ]]`" in prompt:
            return say_fields(relations=self.relations)
        if "`[[ ## facts ## ]]`" in prompt:
            return say_fields(facts=self.facts)
        if "`[[ ## words ## ]]`" in prompt:
            return say_fields(words=["1989"] if BUILT in prompt else ["Ada Smith"])
        self.checks.append(prompt)
        left = MAX_ROUNDS - 1 - self.rounds_wanted
        if f"[[ ## rounds_left ## ]]\n{left}\n" not in prompt and self.relations:
            number = len(self.checks)
            return say_fields(judgement={"look_up": ["the Tower", f"name {number}"]})
        wrong = PLACE not in prompt
        judgement: dict[str, object] = {
            "look_up": [],
            "verdict": "Refuted" if wrong else "supported",
            "reason": "the graph says so",
            "confidence": "80%",
        }
        return say_fields(judgement=judgement)


def test_refuted_facts_mark_the_words_that_state_them(
    model_server: ModelServer, make: Make
) -> None:
    model_server.script(Verifier())
    said = detect(make("ucsc-kg")).annotation
    assert [(span.text, span.prob, span.note) for span in said.spans] == [
        ("1989", 0.8, "the graph says so"),
        ("Ada Smith", 0.8, "the graph says so"),
    ]


def test_every_fact_becomes_a_claim_with_verdict_source_and_evidence(
    model_server: ModelServer, make: Make
) -> None:
    model_server.script(Verifier())
    claims = detect(make("ucsc-kg")).annotation.claims
    assert [(claim.text, claim.verdict) for claim in claims] == [
        (BUILT, "refuted"),
        (BUILDER, "refuted"),
        (PLACE, "supported"),
    ]
    for claim in claims:
        assert claim.source is not None
        assert claim.source.text == ANSWER
    assert [claim.evidence[0].stance for claim in claims] == ["refutes", "refutes", "supports"]


def test_the_trace_shows_the_graph_and_what_was_looked_up(
    model_server: ModelServer, make: Make
) -> None:
    model_server.script(Verifier())
    trace = detect(make("ucsc-kg")).annotation.trace
    relations = [step for step in trace if isinstance(step, RelationStep)]
    assert [(step.relation, step.object) for step in relations][2:] == [
        ("located in", "Paris"),
        ("symbol of", "Paris"),
    ], "several relations between two entities stay"
    facts = [step for step in trace if isinstance(step, FactStep)]
    assert [step.verdict for step in facts] == ["refuted", "refuted", "supported"]
    assert "the Tower" in facts[0].looked_up
    assert [(place.start, place.end) for place in facts[0].places] == [(23, 27)]


def test_the_model_sees_the_relations_it_looked_up(model_server: ModelServer, make: Make) -> None:
    verifier = Verifier(facts=[{"fact": BUILT, "sentence": ANSWER}])
    model_server.script(verifier)
    detect(make("ucsc-kg"))
    first, second = verifier.checks
    assert "(nothing looked up yet)" in first
    assert "Tower; 1889; Gustave Eiffel; Paris" in first
    assert "- Tower – built in – 1889\n- Tower – built by – Gustave Eiffel" in second


def test_the_rounds_are_bounded(model_server: ModelServer, make: Make) -> None:
    verifier = Verifier(facts=[{"fact": BUILT, "sentence": ANSWER}], rounds_wanted=99)
    model_server.script(verifier)
    said = detect(make("ucsc-kg")).annotation
    assert len(verifier.checks) == MAX_ROUNDS
    assert [claim.verdict for claim in said.claims] == ["not-enough-evidence"]
    assert (said.status, said.spans) == (Status.DONE, ())


def test_without_passages_each_fact_is_checked_once_by_what_the_model_knows(
    model_server: ModelServer, make: Make
) -> None:
    verifier = Verifier(relations=[], facts=[{"fact": BUILT, "sentence": ANSWER}])
    model_server.script(verifier)
    said = detect(make("ucsc-kg"), TOWER.model_copy(update={"passages": ()})).annotation
    assert len(verifier.checks) == 1
    assert "judge by what you know" in verifier.checks[0]
    assert [span.text for span in said.spans] == ["1989"]
    assert said.note == "no passages: the model judged the answer by what it knows"
    assert "`[[ ## relations ## ]]`" not in json.dumps([ask.text for ask in model_server.requests])


def test_facts_without_words_and_half_relations_are_left_out(
    model_server: ModelServer, make: Make
) -> None:
    """What a model leaves out ends neither the run nor in a KeyError."""
    relations = [*RELATIONS, {"subject": "Tower"}, None, "Tower"]
    facts = [{"fact": ""}, None, {"claim": BUILT, "source": None}]
    model_server.script(Verifier(relations=relations, facts=facts))
    said = detect(make("ucsc-kg")).annotation
    assert [claim.text for claim in said.claims] == [BUILT]
    assert said.claims[0].source is None
    assert sum(isinstance(step, RelationStep) for step in said.trace) == len(RELATIONS)


def test_too_many_facts_are_bounded_and_the_trace_says_so(
    model_server: ModelServer, make: Make
) -> None:
    facts = [{"fact": f"{PLACE} {number}", "sentence": ANSWER} for number in range(43)]
    model_server.script(Verifier(facts=facts))
    said = detect(make("ucsc-kg")).annotation
    assert len(said.claims) == 40
    assert "3 more facts were not checked" in [
        step.text for step in said.trace if isinstance(step, RemarkStep)
    ]


def test_a_failure_on_the_way_fails_the_item_with_the_reason(
    model_server: ModelServer, make: Make
) -> None:
    """A failed judgement is a state."""
    verifier = Verifier()

    def script(ask: ModelRequest) -> ScriptedReply:
        broken = "`[[ ## judgement ## ]]`" in prompt_of(ask)
        return ScriptedReply(500, {"error": {"message": "on fire"}}) if broken else verifier(ask)

    model_server.script(script)
    said = detect(make("ucsc-kg")).annotation
    assert (said.status, said.spans, said.claims) == (Status.FAILED, (), ())
    assert said.note is not None
    assert "on fire" in said.note
    assert [step.kind for step in said.trace] == ["query", *["relation"] * 4, "calls"]


def test_the_trace_of_a_failed_item_has_what_was_gathered_before(
    model_server: ModelServer, make: Make
) -> None:
    """What was paid for until the failure can be read."""
    verifier = Verifier()

    def script(ask: ModelRequest) -> ScriptedReply:
        prompt = prompt_of(ask)
        if PLACE in prompt and "`[[ ## judgement ## ]]`" in prompt:
            return ScriptedReply(500, {"error": {"message": "on fire"}}, delay=1.0)
        return verifier(ask)

    model_server.script(script)
    said = detect(make("ucsc-kg")).annotation
    assert said.status is Status.FAILED
    facts = [step for step in said.trace if isinstance(step, FactStep)]
    assert {(step.text, step.verdict) for step in facts} == {
        (BUILT, "refuted"),
        (BUILDER, "refuted"),
    }
    assert [place.start for step in facts for place in step.places if step.text == BUILT] == [23]
    assert sum(isinstance(step, RelationStep) for step in said.trace) == len(RELATIONS)
    assert said.spans == (), "half a verification marks nothing"


def test_the_graph_is_kept_if_the_facts_cannot_be_listed(
    model_server: ModelServer, make: Make
) -> None:
    verifier = Verifier()

    def script(ask: ModelRequest) -> ScriptedReply:
        listing = "`[[ ## facts ## ]]`" in prompt_of(ask)
        if listing:
            return ScriptedReply(500, {"error": {"message": "on fire"}}, delay=1.0)
        return verifier(ask)

    model_server.script(script)
    trace = detect(make("ucsc-kg")).annotation.trace
    assert [step.kind for step in trace] == ["query", *["relation"] * 4, "calls"]


def test_the_program_also_runs_without_an_event_loop_as_optimisers_call_it(
    model_server: ModelServer, make: Make
) -> None:
    from spanlab.models import predicting

    model_server.script(Verifier())
    detector: Any = make("ucsc-kg")
    with predicting(detector.kit.lm()):
        prediction = detector.program(**detector.inputs(TOWER))
    assert [span.text for span in detector.mark(TOWER, prediction).spans] == ["1989", "Ada Smith"]


def test_what_ends_one_of_many_calls_is_the_reason_of_the_failure(
    model_server: ModelServer, make: Make
) -> None:
    """Exhausted credits are said as such, however deep the call was."""
    model_server.script(lambda ask: fail(402, "no funds"))
    failed = detect(make("ucsc-kg")).annotation
    assert failed.status is Status.FAILED
    assert failed.note is not None
    assert failed.note.startswith("credits exhausted")


def test_what_could_not_be_verified_is_marked_if_asked_for_and_half_as_likely_at_most(
    model_server: ModelServer, make: Make
) -> None:
    verifier = Verifier(facts=[{"fact": BUILT, "sentence": ANSWER}])

    def script(ask: ModelRequest) -> ScriptedReply:
        if "`[[ ## judgement ## ]]`" in ask.text:
            return say_fields(judgement={"verdict": "not enough evidence", "confidence": 0.9})
        return verifier(ask)

    model_server.script(script)
    found = {}
    for unverified in (False, True):
        said = detect(make("ucsc-kg", options={"unverified": unverified})).annotation
        assert [claim.verdict for claim in said.claims] == ["not-enough-evidence"]
        found[unverified] = [(span.text, span.prob) for span in said.spans], hard_of(said)
    place = ANSWER.index("1989")
    assert found == {
        False: ([], []),
        True: ([("1989", 0.5)], [(place, place + 4)]),  # a hard label, as in the paper's Table 3
    }


def test_programs_from_before_claims_were_shared_keep_their_demonstrations() -> None:
    program = FactVerifier()
    earlier = TunedPredictor(
        instruction="Name the words.",
        demos=({"fact": BUILT, "sentence": ANSWER, "words": [{"text": "1989"}]},),
    )
    apply_program(program, {"words": earlier})
    assert program.words.demos == [
        {"claim": BUILT, "sentence": ANSWER, "words": [{"text": "1989"}]}
    ]
    assert program.words.signature.instructions == "Name the words."
    with pytest.raises(InputError, match="a tuned prompt for another detector"):
        apply_program(program, {"gone": earlier})
