"""The trace in Review: what a detector asked, read and decided, beside the answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pytest
from driving import Desk, becomes, tells
from playwright.sync_api import expect
from steps import step

from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    AnswerPlace,
    CallsStep,
    Evidence,
    FactStep,
    Item,
    NodeQuote,
    PairStep,
    Passage,
    PassageQuote,
    QueryStep,
    QuoteStep,
    RecallStep,
    Record,
    RelationStep,
    RemarkStep,
    Span,
    Status,
    Step,
)

pytestmark = pytest.mark.browser

Sit = Callable[[Sequence[Record]], Desk]

ANSWER = "🎉 Marie Curie was born in Paris in 1859 and won three Nobel Prizes."
SENTENCE = "She was born in Warsaw in 1867."
PASSAGE = f"Marie Curie was a physicist and chemist. {SENTENCE} She won the Nobel Prize twice."
EVIL = "<img src=x onerror='window.owned=1'><b>bold</b>"
WIDE = """() => [".sl-trace", ".sl-trace-body", ".sl-right", ".sl-main"]
    .map((name) => [name, document.querySelector(name)])
    .filter(([, node]) => node.scrollWidth > node.clientWidth + 1)
    .map(([name]) => name)
    .concat(document.documentElement.scrollWidth > innerWidth ? ["the page"] : [])"""


def place(text: str, answer: str = ANSWER) -> AnswerPlace:
    start = answer.index(text)
    return AnswerPlace(start=start, end=start + len(text))


def span(text: str, *evidence: Evidence, answer: str = ANSWER) -> Span:
    start = answer.index(text)
    return Span.of(answer, start, start + len(text), prob=0.9, evidence=evidence)


def told(name: str, *steps: Step, spans: tuple[Span, ...] = ()) -> Annotation:
    return Annotation(annotator=name, kind=AnnotatorKind.DETECTOR, spans=spans, trace=steps)


def curie(*annotations: Annotation, name: str = "curie") -> Record:
    whole = f"Heads. {PASSAGE} " + "Tails. " * 80
    passages = (
        Passage(text="Nothing of use. " * 80, title="Paris"),
        Passage(text=PASSAGE),
        Passage(text=whole, title="Curie", url="https://www.lives.example/1", date="2019-05-01"),
    )
    item = Item(id=name, lang="en", question="Where?", answer=ANSWER, passages=passages)
    return Record(item=item, annotations=annotations)


REFUTES = Evidence(
    passage=1,
    start=PASSAGE.index(SENTENCE),
    end=PASSAGE.index(SENTENCE) + len(SENTENCE),
    text=SENTENCE,
    stance="refutes",
)
EXTRACT = told(
    "extract",
    QueryStep(text="Where was she born?", retriever="bm25:corpus", passages=(0, 1)),
    QuoteStep(text="Paris", prob=0.9, reason="It was Warsaw.", places=(place("Paris"),)),
    QuoteStep(text="three Nobel Prizes", prob=0.7, places=(place("three Nobel Prizes"),)),
    QuoteStep(text="in Berlin", prob=0.4),
    RemarkStep(text="A trailing comma was repaired."),
    CallsStep(
        model="gpt-small",
        calls=3,
        from_cache=1,
        input_tokens=12_345,
        cached_tokens=10_240,
        output_tokens=312,
        cost=0.0213,
        options={"temperature": 0.2, "top_p": 0.7},
    ),
    spans=(span("Paris", REFUTES), span("1859")),
)
GRAPH = told(
    "graph",
    RelationStep(subject="Curie", relation="born in", object="Warsaw"),
    FactStep(
        text="Curie was born in Paris.",
        verdict="refuted",
        prob=0.8,
        reason="The graph says Warsaw.",
        looked_up=("Curie, born in",),
        places=(place("Paris"),),
    ),
    FactStep(text="Curie won prizes.", verdict="supported"),
    FactStep(text="There were three.", verdict="not-enough-evidence"),
)
TRAIL = told(
    "trail",
    step(
        "trail",
        claim=0,
        round=1,
        checked=("summary 1", "summary 2"),
        quotes=(NodeQuote(node="summary 1", start=0, end=11, text="She was born"),),
        summaries=("Her birth is told.",),
        verdict="supported",
        reason="The summary says so.",
    ),
    step("trail", claim=0, round=2, checked=("chapter",), verdict="not-supported"),
    FactStep(text="Curie was born.", verdict="not-supported", claim=0),
)
PURSUED = told(
    "pursued",
    PairStep(
        claim=0,
        round=1,
        question="Where was she born?",
        answer="In Warsaw.",
        searched="Curie was born in Paris. Where was she born?",
        passages=(1,),
        window=PassageQuote(passage=2, start=7, end=7 + len(PASSAGE)),
        sentence=PassageQuote(passage=2, start=7 + REFUTES.start, end=7 + REFUTES.end),
        settled="supported",
        remark="read by its snippet",
    ),
    PairStep(claim=0, round=2, question="When?", answer="In 1867.", searched="x", passages=(0, 1)),
    FactStep(text="Curie was born in Paris.", verdict="refuted", claim=0),
    spans=(span("Paris", REFUTES),),
)
AGENT = told(
    "agent",
    RecallStep(entities=("Curie",), passages=(0,), notes=("kept on 2026-11-01 from search",)),
    step(
        "thought",
        text="Look for it.",
        tool="search",
        arguments={"query": "Curie <b>born</b>"},
        passages=(1,),
        round=1,
        claim=0,
    ),
    step("thought", text="Read.", tool="read_page", failure="no such page", round=2, repeats=1),
    step("thought", text="It was Warsaw.", round=3),
    spans=(span("Paris", REFUTES),),
)
HOPPING = told(
    "hopping",
    QueryStep(text="born?", retriever="web", claim=0, round=2, tool="search"),
    FactStep(text="She was born.", verdict="supported", claim=0),
    QuoteStep(text="in Berlin", round=1),
    RemarkStep(text="Enough is known.", claim=2, tool="calculator"),
)
BROKEN = Annotation(
    annotator="broken",
    kind=AnnotatorKind.DETECTOR,
    status=Status.FAILED,
    note="The credits of the account are exhausted: top it up, then retry.",
)


def revised(lang: str, answer: str, revision: str) -> Record:
    item = Item(id=lang, lang=lang, question="?", answer=answer)
    return Record(item=item, annotations=(told("revise", step("revision", text=revision)),))


def open_trace(here: Desk, heading: str) -> None:
    here.press("t")
    step = here.page.locator(".sl-step", has_text=heading)
    expect(step.first).to_be_visible()


def test_a_trace_opens_beside_the_answer_and_says_all_it_has_by_key(desk: Sit) -> None:
    here = desk([curie(EXTRACT, GRAPH)])
    open_trace(here, "Asked")
    trace = here.page.get_by_role("region", name="Trace of extract")
    for text in (
        "Where was she born?",
        "bm25:corpus · 2 passages",
        "3 quotes of the answer, 1 not found in it",
        "It was Warsaw.",
        "90 %",
        "A trailing comma was repaired.",
        "3 (1 from the cache)",
        "temperature 0.2, top p 0.7",
        "12,345 (10,240 cached by the provider)",
        "$0.02",
    ):
        expect(trace).to_contain_text(text)
    expect(trace.locator("li", has_text="in Berlin")).to_contain_text("not found in the answer")
    expect(trace).to_be_focused()
    here.press("T")
    graph = here.page.get_by_role("region", name="Trace of graph")
    for text in (
        "1 relation read from the passages",
        "3 facts of the answer, 1 refuted",
        "✕ refuted",
        "✓ supported",
        "? not enough evidence",
        "The graph says Warsaw.",
        "Looked up: Curie, born in",
    ):
        expect(graph).to_contain_text(text)
    expect(graph.get_by_role("row", name="Curie born in Warsaw")).to_be_visible()
    here.press("Escape")
    expect(here.page.locator(".sl-trace")).to_be_hidden()
    expect(here.page.locator(".sl-answer")).to_be_focused()
    here.press("a")
    here.settle()
    assert here.texts("curie") == ["Paris"]


@pytest.mark.system("mermaid", "veritrail")
def test_a_step_says_of_which_claim_it_is_in_which_round_and_with_which_tool(desk: Sit) -> None:
    """And the trace of an agent, one of a way to the sources, and one of questions."""
    kinds = {"hopping": HOPPING, "agent": AGENT, "trail": TRAIL, "pursued": PURSUED}
    here = desk([curie(said, name=name) for name, said in kinds.items()])
    open_trace(here, "Asked")
    trace = here.page.get_by_role("region", name="Trace of hopping")
    expect(trace).to_contain_text("web · no passages · claim 1 · round 2 · search")
    expect(trace.locator("li", has_text="She was born.")).to_contain_text("(claim 1)")
    expect(trace.locator("li", has_text="in Berlin")).to_contain_text("(round 1)")
    expect(trace).to_contain_text("Enough is known. (claim 3 · calculator)")
    for name, shows in {
        "agent": _shows_an_agent,
        "trail": _shows_a_way_to_the_sources,
        "pursued": _shows_questions,
    }.items():
        here.page.locator(".sl-answer").focus()
        here.press("PageDown")
        here.wait_for(name)
        shows(here)


def _shows_an_agent(here: Desk) -> None:
    trace = here.page.get_by_role("region", name="Trace of agent")
    expect(trace).to_contain_text("Recalled from memory")
    expect(trace).to_contain_text("kept on 2026-11-01 from search")
    first, second, last = map(trace.locator(".sl-thought").nth, range(3))
    expect(first).to_contain_text("search — query: Curie <b>born</b>")
    sentence = first.locator(".sl-read")
    expect(sentence).to_be_hidden()
    first.locator("summary").click()
    expect(sentence).to_be_visible()
    expect(second).to_contain_text("Observation: as in round 1, failed")
    expect(last).to_contain_text("It was Warsaw.")
    expect(last.locator("details")).to_have_count(0)


def _shows_a_way_to_the_sources(here: Desk) -> None:
    trace = here.page.get_by_role("region", name="Trace of trail")
    first, second = map(trace.locator(".sl-trail > li").nth, range(2))
    expect(first).to_contain_text("✓ supported2 texts read (claim 1 · round 1)")
    for text in ("The summary says so.", "summary 1", "She was born", "Her birth is told."):
        expect(first).to_contain_text(text)
    expect(second).to_contain_text("✕ not supported1 text read (claim 1 · round 2)")
    expect(trace).to_contain_text("1 fact of the answer, 1 not supported")


def _shows_questions(here: Desk) -> None:
    first, second = map(here.page.locator(".sl-pair").nth, range(2))
    chain = (
        "Where was she born?",
        "Curie www.lives.example · 2019-05-01",
        PASSAGE,
        "In Warsaw.",
        "Early verdict: ✓ supported",
        "read by its snippet",
    )
    expect(first).to_have_text(re.compile(".*".join(map(re.escape, chain)), re.DOTALL))
    expect(first.locator(".sl-sentence mark")).to_have_text(SENTENCE)
    first.locator(".sl-read").click()
    expect(here.page.locator(".sl-passage mark")).to_have_text(SENTENCE)
    here.page.get_by_role("tab", name="Trace").click()  # which shares its room with the passages
    expect(second).to_contain_text("from 2 search results")
    second.locator("summary").click()
    expect(second.locator(".sl-read")).to_have_count(2)
    last = here.page.locator(".sl-step", has_text="Questions and answers")
    expect(last).to_contain_text("Verdict: ✕ refuted, which overturns the early one")


def test_a_quote_leads_to_its_place_in_the_answer(desk: Sit) -> None:
    """Suggestions of a model, with what led to them, can be edited."""
    here = desk([curie(EXTRACT)])
    here.press("Tab")  # to 1859
    open_trace(here, "quotes")
    paris = here.page.locator(".sl-found", has_text="Paris")
    paris.focus()
    here.press("Enter")
    here.hears("“Paris”")
    expect(paris).to_be_focused()
    here.press("x")
    here.settle()
    assert [one.text for one in here.state("curie").rejected] == ["Paris"]
    here.page.get_by_role("button", name="three Nobel Prizes").click()
    here.hears("three Nobel Prizes")
    expect(here.page.locator(".sl-answer")).to_be_focused()
    here.press("d")
    here.settle()
    assert here.texts("curie") == ["three Nobel Prizes"]


def test_a_passage_read_leads_to_the_passage_with_its_sentence_marked(desk: Sit) -> None:
    here = desk([curie(EXTRACT)])
    here.press("Tab")  # to 1859, which has no evidence
    open_trace(here, "Asked")
    read = here.page.locator(".sl-read", has_text="Passage 2")
    expect(read.locator("mark")).to_have_text(SENTENCE)
    expect(here.page.locator(".sl-passages mark")).to_have_count(0)
    read.click()
    mark = here.page.locator(".sl-passages mark")
    expect(mark).to_have_text(SENTENCE)
    expect(mark).to_be_in_viewport()
    here.page.get_by_role("tab", name="Trace").click()  # which shares its room with the passages
    here.page.locator(".sl-read", has_text="Paris").click()
    expect(mark).to_have_count(0)
    expect(here.page.locator(".sl-passage", has_text="Nothing of use")).to_be_in_viewport()


REVISIONS = {  # answer, revision, what went, what came
    "en": ("It is a 🎉 big city.", "It is a 🎉 small town.", "big city", "small town"),
    "zh": ("他是美国人。", "他是法国人。", "美", "法"),
    "ar": ("هو من مصر عام 1911.", "هو من ليبيا عام 1911.", "مصر", "ليبيا"),
}


@pytest.mark.system("ucsc")
def test_a_revision_shows_what_went_and_what_came_from_either_side(desk: Sit) -> None:
    here = desk([revised(lang, *said[:2]) for lang, said in REVISIONS.items()])
    open_trace(here, "Revision: 1 change")
    for lang, (_, _, gone, came) in REVISIONS.items():
        here.wait_for(lang)
        diff = here.page.locator(".sl-diff")
        expect(diff.locator("del")).to_have_text([gone])
        expect(diff.locator("ins")).to_have_text([came])
        lines = diff.evaluate(
            """(node) => ["del", "ins"].map((name) =>
                getComputedStyle(node.querySelector(name)).textDecorationLine)"""
        )
        assert lines == ["line-through", "underline"]  # told apart without any colour
        before, behind = diff.evaluate(
            """(node) => ["del", "ins"].map((name) =>
                node.querySelector(name).getBoundingClientRect().left)"""
        )
        assert (before < behind) == (lang != "ar")
        here.press("PageDown")


def test_the_panel_goes_along_from_item_to_item(desk: Sit) -> None:
    here = desk(
        [
            curie(EXTRACT, GRAPH, name="one"),
            curie(EXTRACT, GRAPH, name="two"),
            curie(name="three"),
        ]
    )
    open_trace(here, "Asked")
    here.press("T")
    expect(here.page.get_by_role("region", name="Trace of graph")).to_contain_text("3 facts")
    here.page.locator(".sl-answer").focus()
    here.press("PageDown")
    here.wait_for("two")
    expect(here.page.get_by_role("region", name="Trace of graph")).to_contain_text("3 facts")
    here.press("PageDown")
    here.wait_for("three")
    expect(here.page.locator(".sl-trace-body")).to_have_text(
        "No detector left a trace on this item."
    )


@pytest.mark.system("ucsc")
def test_a_trace_full_of_markup_and_long_words_is_text_that_fits(desk: Sit) -> None:
    steps = (
        QueryStep(text=EVIL, retriever=EVIL, passages=(0, 1)),
        QuoteStep(text=EVIL * 9, reason="W" * 900),
        FactStep(text=EVIL, verdict="refuted", reason=EVIL * 9, looked_up=("x" * 400,)),
        RelationStep(subject="s" * 300, relation=EVIL, object=EVIL),
        step("revision", text=EVIL + "w" * 600),
        RemarkStep(text=EVIL),
        CallsStep(model=EVIL + "m" * 300, calls=1),
    )
    here = desk([curie(told(EVIL, *steps), *(told(f"other-{i}", *steps) for i in range(9)))])
    here.page.set_viewport_size({"width": 900, "height": 700})
    open_trace(here, "Revision")
    becomes(lambda: here.page.evaluate(WIDE), [])
    assert here.page.evaluate("window.owned") is None
    assert here.page.locator(".sl-trace-body").locator("img, b b").count() == 0
    expect(here.page.locator(".sl-diff ins")).to_have_text(EVIL + "w" * 600)


@pytest.mark.system("ucsc")
def test_a_large_trace_is_neither_sent_nor_built_before_somebody_looks(desk: Sit) -> None:
    words = [f"word{index % 97}" for index in range(15_000)]
    answer = " ".join(words)[:100_000]
    changed = answer.replace("word13 ", "other ")
    quotes = (QuoteStep(text=answer[i : i + 20], places=(AnswerPlace(start=i, end=i + 20),))
              for i in range(200))  # fmt: skip
    relations = (RelationStep(subject=f"s{i}", relation="r", object="o") for i in range(500))
    item = Item(id="large", lang="en", answer=answer)
    steps: tuple[Step, ...] = (*quotes, *relations, step("revision", text=changed))
    here = desk([Record(item=item, annotations=(told("large", *steps),))])
    assert here.page.evaluate("spanlab.editor.item.payload.annotators[0].steps") == len(steps)
    assert "other" not in here.page.evaluate("JSON.stringify(spanlab.editor.item.payload)")
    expect(here.page.locator(".sl-step")).to_have_count(0)
    open_trace(here, "200 quotes")
    diff = here.page.locator(".sl-diff")
    expect(diff.locator("del")).to_have_count(answer.count("word13 "))
    here.page.get_by_text("500 relations").click()
    expect(here.page.locator(".sl-table tbody tr")).to_have_count(500)
    more = here.page.get_by_text("characters unchanged").first
    before = len(diff.inner_text())
    more.click()
    becomes(lambda: len(diff.inner_text()) > before, True)
    again = "about: structuredClone(spanlab.editor.item.traces.get('large'))"
    here.page.evaluate(
        f"spanlab.editor.view.trace.receive({{ item: 'large', annotator: 'large', {again} }})"
    )
    assert len(diff.inner_text()) > before  # a slow line answers twice


def test_the_trace_has_names_for_those_who_listen_and_a_failure_says_plainly_why(desk: Sit) -> None:
    here = desk([curie(EXTRACT, GRAPH, BROKEN)])
    here.press("v")
    tells(here.page, 'button "Trace of extract"')
    open_trace(here, "Asked")
    tells(
        here.page,
        'tabpanel "Trace"',
        'group "Annotator"',
        'button "extract" [pressed]',
        'region "Trace of extract"',
        'heading "Asked"',
        'button "Paris"',
    )
    here.page.locator(".sl-trace-choice").get_by_role("button", name="broken").click()
    failed = here.page.locator(".sl-trace-failed")
    expect(failed).to_have_text(f"✕ Failed: {BROKEN.note}")
    expect(here.page.locator(".sl-trace-choice")).to_contain_text("broken failed")
