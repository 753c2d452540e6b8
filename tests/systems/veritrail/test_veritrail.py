"""`veritrail`: claims are followed from the answer to its sources, with real calls."""

from __future__ import annotations

import pytest
from detector_cases import ANSWER, TOWER, Make, detect
from trail_answers import BUILDER, BUILT, PLACE, SUMMARISED, TRUE, TrailAnswers

from spanlab.models import ModelChoice
from spanlab.schema import FactStep, Passage, RemarkStep, Status
from spanlab.search.spec import SearchSpec
from spanlab.systems.veritrail.trace import TrailStep, trails
from spanlab.testing import ModelRequest, ModelServer, ScriptedReply, fail


def test_claims_of_an_answer_are_followed_to_its_passages(
    model_server: ModelServer, make: Make
) -> None:
    model_server.script(TrailAnswers())
    said = detect(make("veritrail")).annotation
    assert [(claim.text, claim.verdict) for claim in said.claims] == [
        (BUILT, "not-supported"),
        (BUILDER, "not-supported"),
        (PLACE, "supported"),
    ]
    assert [(span.text, span.prob, span.note) for span in said.spans] == [
        ("1989", 1.0, "so the texts say"),
        ("Ada Smith", 1.0, "so the texts say"),
    ]
    quoted = said.claims[2].evidence[0]
    assert (quoted.passage, quoted.text, quoted.stance) == (0, "Paris is a city.", "supports")


def test_a_process_is_walked_to_the_stage_where_the_error_came_in(
    model_server: ModelServer, make: Make
) -> None:
    model = TrailAnswers(claims=(BUILT,))
    model_server.script(model)
    said = detect(make("veritrail"), SUMMARISED).annotation
    (claim,) = said.claims
    assert (claim.verdict, claim.error_stages) == ("not-supported", ("summary",))
    first, second = (step for step in said.trace if isinstance(step, TrailStep))
    assert (first.round, first.checked, first.verdict) == (
        1,
        ("summary 1", "summary 2"),
        "supported",
    )
    assert [(quote.node, quote.start, quote.text) for quote in first.quotes] == [
        ("summary 1", 10, BUILT)
    ]
    assert (second.round, second.checked, second.verdict) == (2, ("chapter 1",), "not-supported")
    assert [span.text for span in said.spans] == ["1989"]


def test_roots_are_judged_by_their_whole_text_and_others_by_their_summary(
    model_server: ModelServer, make: Make
) -> None:
    model = TrailAnswers(claims=(BUILT,))
    model_server.script(model)
    detect(make("veritrail"), SUMMARISED)
    assert model.judged == [
        "[1] [2] The tower was built in 1989.",
        f"[1] Trees are green. {TRUE}.",
    ]


def test_prompts_hold_no_more_sentences_than_set(model_server: ModelServer, make: Make) -> None:
    model = TrailAnswers(claims=(PLACE,))
    model_server.script(model)
    said = detect(make("veritrail", options={"root_sentences": 1})).annotation
    assert sorted(model.selected) == [
        "[1] It has many cafés.",
        "[1] Paris is a city.",
        "[1] The tower was built in 1889 by Gustave Eiffel in Paris.",
        "[1] Trees are green.",
    ]
    assert [quote.text for quote in said.claims[0].evidence] == [
        "Paris is a city.",
        "The tower was built in 1889 by Gustave Eiffel in Paris.",
    ]


def test_without_anything_to_read_a_claim_is_not_supported(
    model_server: ModelServer, make: Make
) -> None:
    model = TrailAnswers(claims=(PLACE,))
    model_server.script(model)
    said = detect(make("veritrail"), TOWER.model_copy(update={"passages": ()})).annotation
    assert [claim.verdict for claim in said.claims] == ["not-supported"]
    assert (model.selected, model.judged) == ([], [])


def test_a_claim_that_fails_is_one_failed_claim(model_server: ModelServer, make: Make) -> None:
    model = TrailAnswers()

    def fails(ask: ModelRequest) -> ScriptedReply:
        if "`[[ ## chosen ## ]]`" in ask.text and BUILDER in ask.text:
            return fail(400, "content_filter")
        return model(ask)

    model_server.script(fails)
    said = detect(make("veritrail")).annotation
    assert said.status is Status.DONE
    assert said.note == "1 of 3 claims could not be judged"
    assert [claim.verdict for claim in said.claims] == ["not-supported", None, "supported"]
    assert (said.claims[1].note or "").startswith("not judged: ")


def test_an_item_of_which_every_claim_fails_is_failed(
    model_server: ModelServer, make: Make
) -> None:
    model = TrailAnswers()
    model_server.script(
        lambda ask: fail(400, "too long") if "`[[ ## chosen ## ]]`" in ask.text else model(ask)
    )
    assert detect(make("veritrail")).annotation.status is Status.FAILED


def test_what_cannot_be_verified_is_no_claim(model_server: ModelServer, make: Make) -> None:
    model_server.script(TrailAnswers(verifiable="None."))
    said = detect(make("veritrail")).annotation
    assert (said.status, said.claims, said.note) == (
        Status.DONE,
        (),
        "the answer states nothing that can be verified",
    )
    assert [step.text for step in said.trace if isinstance(step, RemarkStep)] == [
        f"not verifiable: {ANSWER}"
    ]


def test_the_answer_may_be_one_claim(model_server: ModelServer, make: Make) -> None:
    model_server.script(TrailAnswers(claims=(ANSWER,)))
    said = detect(make("veritrail", options={"claims": "answer"})).annotation
    assert [claim.text for claim in said.claims] == [ANSWER]
    assert [step.text for step in said.trace if isinstance(step, FactStep)] == [ANSWER]


def test_several_answers_to_each_question_give_a_soft_score(
    model_server: ModelServer, make: Make
) -> None:
    model = TrailAnswers(claims=(PLACE,))
    model_server.script(model)
    options = {"samples": 3, "agreeing": 2}
    said = detect(make("veritrail", options=options)).annotation
    assert len(model.judged) == 3
    assert [(claim.verdict, claim.prob) for claim in said.claims] == [("supported", 1.0)]


@pytest.mark.parametrize(
    ("detector", "options", "judged", "verdict"),
    [
        pytest.param(
            "veritrail-rag",
            {"k": 1},
            [f"[1] Trees are green. {TRUE}."],
            "not-supported",
            id="the-closest-source",
        ),
        pytest.param(
            "veritrail-source",
            {},
            [f"[1] Trees are green. {TRUE}.\n\n[2] Paris is a city."],
            "not-supported",
            id="the-whole-source",
        ),
        pytest.param(
            "veritrail-vt-rag",
            {"k": 1},
            ["[1] On trees. The tower was built in 1989.", f"[1] Trees are green. {TRUE}."],
            "not-supported",
            id="traced",
        ),
    ],
)
def test_baselines_judge_by_the_same_prompt_on_texts_chosen_otherwise(
    model_server: ModelServer,
    make: Make,
    detector: str,
    options: dict[str, object],
    judged: list[str],
    verdict: str,
) -> None:
    model = TrailAnswers(claims=(BUILT,))
    model_server.script(model)
    said = detect(make(detector, options=options), SUMMARISED).annotation
    assert model.selected == []
    assert model.judged == judged
    assert [claim.verdict for claim in said.claims] == [verdict]
    assert [span.text for span in said.spans] == ["1989"]


def test_texts_that_do_not_fit_are_left_out_farthest_first(
    model_server: ModelServer, make: Make
) -> None:
    long = TOWER.model_copy(
        update={"passages": (Passage(text="Sea. " * 400), Passage(text=f"{TRUE}. " + "x" * 900))}
    )
    model = TrailAnswers(claims=(BUILT,))
    model_server.script(model)
    detect(make("veritrail-source", context=1000), long)
    (shown,) = model.judged
    assert "Sea" not in shown
    assert TRUE in shown


def test_sources_beyond_the_model_s_window_are_judged_by_what_was_chosen_of_them(
    model_server: ModelServer, make: Make
) -> None:
    long = TOWER.model_copy(update={"passages": (Passage(text=f"{TRUE}. " + "Sea. " * 2000),)})
    model = TrailAnswers(claims=(BUILT,))
    model_server.script(model)
    small = ModelChoice(model="small", base_url=model_server.url, window=4000)  # room for 1,200
    shown = []
    for detector in ("veritrail", "veritrail-source"):
        said = detect(make(detector, models={"judge": small}), long).annotation
        shown.append(model.judged[-1])
        (step,) = (step for step in said.trace if isinstance(step, TrailStep))
        assert step.remark == (
            "1 of 1 texts were judged by a part of them: a verdict takes about 1,200 tokens of "
            "evidence"
        )
    assert shown[0] == f"[1] {TRUE}."
    assert len(shown[1]) == len("[1] ") + 4 * 1200


def test_a_baseline_s_trace_says_which_texts_were_judged(
    model_server: ModelServer, make: Make
) -> None:
    model_server.script(TrailAnswers(claims=(BUILT,)))
    said = detect(make("veritrail-rag", options={"k": 1}), SUMMARISED).annotation
    (step,) = (step for step in said.trace if isinstance(step, TrailStep))
    assert step.checked == ("chapter 1", "chapter 2")
    assert (step.judged, step.reason) == (("chapter 1",), "so the texts say")
    (trail,) = trails(SUMMARISED, said)
    assert [node.id for node in trail.nodes] == ["end", "chapter 1"]


def test_sources_that_were_found_before_are_recalled(model_server: ModelServer, make: Make) -> None:
    model_server.script(TrailAnswers(claims=(PLACE,)))
    hit = {"title": "Paris", "url": "https://a.example/", "content": f"{PLACE} It rains."}
    bare = TOWER.model_copy(update={"passages": ()})
    with ModelServer(lambda ask: ScriptedReply(body={"results": [hit]})) as search:
        spec = SearchSpec(url=f"{search.url}/search?q={{query}}")
        detect(make("veritrail", retriever=spec, options={"memory": "on"}), bare)
    found = detect(make("veritrail", options={"memory": "read-only"}), bare)
    (claim,) = found.annotation.claims
    (quote,) = claim.evidence
    assert (claim.verdict, quote.text) == ("supported", PLACE)
    assert str(quote.note).startswith("from memory: found on 20")
    assert found.annotation.trace[0].kind == "recall"
    (plain,) = detect(make("veritrail"), bare).annotation.claims
    assert plain.evidence == ()
