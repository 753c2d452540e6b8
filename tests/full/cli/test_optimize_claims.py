"""`spanlab optimize … --metric verdict-f1`: the prompt of a verdict is tuned on labelled claims."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from gold_answers import GoldAnswers, instruction
from prompts import prompt_of
from trail_answers import field

from spanlab.formats import write
from spanlab.models.programs import ProgramRegistry
from spanlab.schema import Annotation, AnnotatorKind, Claim, Item, Passage, Record
from spanlab.testing import ModelRequest, ModelServer, ScriptedReply, say_fields

Run = Callable[..., subprocess.CompletedProcess[str]]

SMALL = ("--metric", "verdict-f1", "--trials", "3")
NAMES = ("Ada", "Ben", "Cy", "Dee", "Eve", "Fay", "Gus", "Hal")
ASKED_FOR = re.compile(
    r"`\[\[ ## (verifiable|resolved|claims|chosen|ruling|question|next|ways|picked) ## \]\]`"
)
_ALWAYS = {"chosen": ["1"], "next": {"claim_is": "open", "question": "And when?"}, "ways": []}


def _record(number: int, name: str) -> Record:
    right, wrong = (f"{name} built a tower in {year}." for year in (1800 + number, 1900 + number))
    item = Item(
        id=name,
        lang="en",
        question=f"What did {name} build?",
        answer=f"{right} {wrong}",
        passages=(Passage(text=right),),
    )
    claims = (Claim(text=right, verdict="supported"), Claim(text=wrong, verdict="refuted"))
    gold = Annotation(annotator="gold", kind=AnnotatorKind.GOLD, claims=claims)
    return Record(item=item, annotations=(gold,))


class Model:
    """Calls every claim supported, until its instruction asks for something short."""

    def __init__(self, records: list[Record]) -> None:
        self._others = GoldAnswers(records)
        self._passages = {each.item.id: each.item.passages[0].text for each in records}

    def __call__(self, ask: ModelRequest) -> ScriptedReply:
        prompt = prompt_of(ask)
        found = ASKED_FOR.search(prompt.rpartition("Respond with ")[2])
        if found is None:
            return self._others(ask)
        said = {found[1]: self._value(found[1], prompt, ask)}
        return say_fields(reason="it is clear", summary="the year", **said)

    def _value(self, wanted: str, prompt: str, ask: ModelRequest) -> object:
        if wanted == "ruling":
            return self._ruling(prompt, careful="short" in instruction(ask))
        if wanted == "picked":
            name = field(prompt, "question").split()[0]
            return {"answer": self._passages[name], "document": "none"}
        if wanted == "question":
            return f"{field(prompt, 'claim').split()[0]} built it when?"
        if wanted == "claims":
            return [field(prompt, "sentence")]
        if wanted in {"verifiable", "resolved"}:
            return field(prompt, "sentence")
        return _ALWAYS[wanted]

    def _ruling(self, prompt: str, *, careful: bool) -> object:
        claim = field(prompt, "claim")
        read = field(prompt, "pairs" if "[[ ## pairs ## ]]" in prompt else "evidence")
        right = claim in read or not careful
        return {"reason": "by the year", "verdict": "supported" if right else "refuted"}


@pytest.fixture
def tuned(spanlab: Run, model_server: ModelServer, tmp_path: Path) -> Run:
    """`spanlab` with a dataset of labelled claims, and a model that rewards good prompts."""
    records = [_record(number, name) for number, name in enumerate(NAMES)]
    write(records, tmp_path / "claims.jsonl")
    model_server.script(Model(records))
    assert spanlab("import", "claims.jsonl", "--dataset", "mine").returncode == 0

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return spanlab(
            *arguments,
            OPENAI_API_KEY="sk-secret",
            OPENAI_BASE_URL=model_server.url,
            SPANLAB_MODEL="small",
        )

    return run


@pytest.mark.parametrize(
    "detector",
    [
        pytest.param(("veritrail",), id="veritrail", marks=pytest.mark.system("veritrail")),
        pytest.param(
            ("papelo", "--option", "n=1"), id="papelo", marks=pytest.mark.system("papelo")
        ),
    ],
)
def test_the_verdict_s_prompt_is_tuned_measured_by_macro_f1_and_used(
    detector: tuple[str, ...], tuned: Run, model_server: ModelServer, tmp_path: Path
) -> None:
    done = tuned("optimize", "mine", "--detector", *detector, "--name", "first", "--use", *SMALL)
    assert done.returncode == 0, done.stderr
    # All 16 called supported: F1 is 2/3 for supported and 0 for refuted.
    said = "better than the untuned prompt: macro F1 .333 → 1.000 on 16 held-out claims (2 folds)"
    assert said in done.stderr
    assert f"{detector[0]} uses first" in done.stderr
    program = ProgramRegistry(tmp_path / "home" / "programs").load("first")
    assert (program.metric, program.items, set(program.predictors)) == ("verdict-f1", 8, {"judge"})
    assert program.search_score == 1.0, "the share of right verdicts"
    job = tuned("jobs", "list").stdout.splitlines()[1].split()[0]
    log = tuned("jobs", "show", job).stdout
    assert "8 held out" in log
    assert "scored by the share of right verdicts (accuracy)" in log
    assert "macro F1 of the untuned prompt is 0.333, of the tuned one 1.000" in log
    model_server.requests.clear()
    found = tuned("annotate", "mine", "--detector", *detector, "--limit", "1")
    assert found.returncode == 0, found.stderr
    rulings = [ask for ask in model_server.requests if "## ruling ## ]]`" in ask.text]
    assert rulings
    assert all("short" in instruction(ask) for ask in rulings)


@pytest.mark.system("veritrail")
def test_claims_are_counted_before_the_search(tuned: Run, model_server: ModelServer) -> None:
    estimate = tuned("optimize", "mine", "--detector", "veritrail", "--dry-run", *SMALL)
    assert estimate.returncode == 0, estimate.stderr
    assert estimate.stdout.startswith("16 labelled claims; at most 16 evaluations, ")
    assert model_server.requests == []


@pytest.mark.system("veritrail")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param(
            ("--detector", "ucsc-extract", "--metric", "verdict-f1"),
            "the metric 'verdict-f1' scores verdicts on claims, and 'ucsc-extract' is tuned on "
            "the spans of answers (its metrics: iou, corr, max-iou, precision, recall, f1, "
            "span-f1, iou+corr, all, answer-accuracy, answer-brier)",
            id="claims-for-spans",
        ),
        pytest.param(
            ("--detector", "veritrail", "--metric", "iou"),
            "the metric 'iou' scores the spans of answers, and 'veritrail' is tuned on verdicts "
            "on claims (its metrics: verdict-f1)",
            id="spans-for-claims",
        ),
        pytest.param(
            ("--detector", "veritrail", "--dry-run", "--labels", "reviewed"),
            "no item has claims with reviewed verdicts; review some, or choose other labels",
            id="nothing-labelled",
        ),
        pytest.param(
            ("--detector", "veritrail", "--dry-run", "--limit", "4", "--folds", "5"),
            "4 labelled claims with 3 different questions are too few for 5 folds",
            id="too-few",
        ),
    ],
)
def test_what_does_not_fit_is_refused(tuned: Run, options: tuple[str, ...], said: str) -> None:
    refused = tuned("optimize", "mine", *options)
    assert refused.returncode == 2, refused.stderr
    assert said in " ".join(refused.stderr.split())
