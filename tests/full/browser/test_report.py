"""The HTML report that people mail: it shows what was marked, and hostile text runs nothing."""

from __future__ import annotations

import pytest
from measured_data import filled
from playwright.sync_api import Browser

from spanlab.data.export_choice import ExportChoice
from spanlab.data.exporting import export_dataset
from spanlab.measure.certificate_html import certificate_html
from spanlab.measure.certificates import certify
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    Claim,
    Evidence,
    Item,
    Passage,
    Record,
    Span,
    Status,
)
from spanlab.storage import Store

pytestmark = pytest.mark.browser

EVIL = (
    "<script>window.owned = 1</script><img src=x onerror='window.owned = 2'>"
    "\"><svg onload=window.owned=3></style></title></details>' onmouseover='window.owned=4 "
    "<meta http-equiv=refresh content='0;url=javascript:1'><style>body{display:none}</style> \x00"
    "<link rel=stylesheet href=http://example.org/x.css> &lt;b&gt; <base href=http://example.org>"
)
URLS = (
    "javascript:window.owned=5",
    "data:text/html,<script>window.owned=6</script>",
    "https://example.org/'><script>window.owned=7</script>",
    "http:owned",
)


def test_a_report_of_hostile_items_shows_them_as_text_and_runs_and_loads_nothing(
    store: Store, browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    quote = Evidence(start=0, end=40, text=EVIL[:40], passage=0, stance="refutes", note=EVIL)
    span = Span.of(EVIL, 0, 90, prob=0.9, label=EVIL[:60], evidence=(quote,))
    marked = span.model_copy(update={"note": EVIL})
    said = [
        Annotation(annotator=EVIL[:90], kind=AnnotatorKind.DETECTOR, spans=(marked,), note=EVIL),
        Annotation(annotator="gold", kind=AnnotatorKind.GOLD, spans=(span,)),
        Annotation(annotator="b<b>", kind=AnnotatorKind.PERSON, status=Status.FAILED, note=EVIL),
        Annotation(
            annotator="c</h3>",
            kind=AnnotatorKind.DETECTOR,
            claims=(Claim(text=EVIL, verdict="refuted", note=EVIL, evidence=(quote,)),),
        ),
    ]
    passages = tuple(Passage(text=EVIL, title=EVIL, url=url, date=EVIL) for url in URLS)
    meta = {"model": EVIL[:50]}
    item = Item(id=EVIL[:50], lang="en", question=EVIL, answer=EVIL, passages=passages, meta=meta)
    title = "report <script>window.owned=8</script>"
    store.import_records(title, [Record(item=item, annotations=tuple(said))])
    path = tmp_path_factory.mktemp("report") / "report.html"
    assert export_dataset(store, title, path, ExportChoice(format="report")) == 1

    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
    page.locator("mark.hard").first.hover()
    assert page.evaluate("window.owned") is None
    assert asked == [path.as_uri()]
    assert page.locator("script, img, svg, link, base, [onmouseover], [onerror]").count() == 0
    shown = EVIL.replace("\x00", "")  # which browsers drop
    assert page.locator("article .answer").first.evaluate("each => each.textContent") == shown
    assert page.locator("mark").last.evaluate("each => each.textContent") == EVIL[:90]
    links = page.locator("a").evaluate_all("all => all.map(each => each.href)")
    assert {link.partition("'")[0].partition("%27")[0] for link in links} == {
        "https://example.org/"
    }
    rows = page.locator("table th[scope=row]").all_text_contents()  # annotators, labels, models
    assert {"b<b>", "c</h3>", EVIL[:60], EVIL[:50]} <= set(rows)
    assert page.title() == title
    page.close()


def test_a_report_of_long_texts_prints_on_two_pages(
    store: Store, browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text, evidence = "The tower was built in 1989. " * 60, "It was finished in 1889. " * 20
    quote = Evidence(start=0, end=400, text=evidence[:400], passage=0, stance="refutes")
    wrong = Span.of(text, 4, 900, evidence=(quote,))
    people = tuple(
        Annotation(annotator=f"reviewer {n}", kind=AnnotatorKind.PERSON, spans=(wrong,))
        for n in range(14)
    )
    passages = (Passage(text=evidence, title="The tower " * 20),)
    store.import_records(
        "long",
        [
            Record(
                item=Item(
                    id=f"item-{n}",
                    lang="en",
                    question="When was the tower built? " * 30,
                    answer=text,
                    passages=passages,
                    meta={"model": f"model {n % 12}"},
                ),
                annotations=people,
            )
            for n in range(40)
        ],
    )
    store.change_settings("long", lambda settings: settings.with_guidelines("Mark errors.\n" * 300))
    path = tmp_path_factory.mktemp("report") / "long.html"
    export_dataset(store, "long", path, ExportChoice(format="report"))
    page = browser.new_page()
    page.goto(path.as_uri())
    assert page.pdf(format="A4").count(b"/Type /Page\n") == 2
    page.close()


def test_a_certificates_tables_are_whole_in_the_window_that_shows_them(
    store: Store, browser: Browser
) -> None:
    filled(store, "certified", lambda at: at % 4 == 0, 100, 60, by="meta.model")
    with browser.new_context(viewport={"width": 820, "height": 700}) as context:
        page = context.new_page()
        page.set_content(certificate_html(certify(store, "certified")))
        assert page.locator("table").first.locator("th").first.text_content() == "Model"
        tables = "nodes => nodes.map((node) => node.scrollWidth - node.clientWidth)"
        assert set(page.eval_on_selector_all("table", tables)) == {0}
