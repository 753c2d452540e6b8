"""The Export page: what will be in the file is said before, and the file is the workflow's."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest
from streamlit import config
from streamlit.testing.v1 import AppTest

from spanlab.data.export_choice import ExportChoice
from spanlab.data.exporting import export_dataset
from spanlab.data.report_links import shared_report
from spanlab.people.entrance import change_checks
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    Claim,
    Item,
    Record,
    Span,
    Status,
)
from spanlab.storage import Store
from spanlab.ui.counts import counts_html

OpenPage = Callable[..., AppTest]
ANSWER = "Marie Curie was born in Paris."


@pytest.fixture
def mine(store: Store) -> Store:
    """Three items, of which Ann has finished one."""
    mark = Annotation(annotator="Ann", kind=AnnotatorKind.PERSON, spans=(Span.of(ANSWER, 24, 29),))
    store.import_records(
        "mine",
        [
            Record(
                item=Item(id=name, lang="en", answer=ANSWER),
                annotations=(mark,) if name == "a" else (),
            )
            for name in "abc"
        ],
    )
    return store


def exported(store: Store, format: str, *annotators: str) -> bytes:
    stream = BytesIO()
    export_dataset(store, "mine", stream, ExportChoice(format=format, annotators=annotators))
    return stream.getvalue()


def timeless(file: bytes) -> bytes:
    """The bytes of a file without the time at which a report was made."""
    return re.sub(rb"<time.*?</time>", b"", file)


def choose_format(app: AppTest, name: str) -> None:
    """Take a kind of file, all of its forms, and the form."""
    kinds = {"report": "HTML report", "mushroom": "A task's form", "averitec": "A task's form"}
    kind = kinds.get(name, "Labels")
    app.segmented_control(key="export-kind").set_value(kind).run()
    for toggle in app.toggle:
        toggle.set_value(True).run()
    if kind != "HTML report":
        app.radio(key=f"export-format-{kind}").set_value(name).run()


def choose(app: AppTest, annotator: str | None) -> None:
    """Take one of the people, or leave everybody chosen."""
    if annotator is not None:
        app.pills(key="spanlab.chosen.export-mine.person.0").set_value([annotator]).run()


def test_a_lead_makes_and_revokes_a_link_to_the_report(
    open_page: OpenPage, mine: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPANLAB_URL", "https://review.example.org/")
    app = open_page("export")
    choose_format(app, "report")
    press(app, "Create link")
    link = next(code.value for code in app.code if "/report?to=" in code.value)
    assert link.startswith("https://review.example.org/report?to=sl-")
    page = shared_report(mine, link.partition("to=")[2])
    assert page is not None
    assert timeless(page) == timeless(exported(mine, "report"))
    app.run()
    assert not [code for code in app.code if "/report?to=" in code.value]  # shown once
    choice = next(box for box in app.selectbox if box.label == "Revoke")
    choice.set_value(choice.options[0]).run()
    press(app, "Revoke link")
    assert "Revoked" in app.success[0].value
    assert shared_report(mine, link.partition("to=")[2]) is None
    choose_format(app, "spanlab")
    assert "Link to this report" not in [part.label for part in app.expander]


def press(app: AppTest, label: str) -> None:
    next(button for button in app.button if button.label == label).click().run()
    assert not app.exception


def test_without_datasets_the_way_is_shown(open_page: OpenPage) -> None:
    assert "Import a dataset" in open_page("export").info[0].value


def test_missing_annotations_are_counted_beforehand(open_page: OpenPage, mine: Store) -> None:
    """What each annotator still lacks is known before the export."""
    app = open_page("export")
    assert "2 of 3 not finished by Ann yet" in "".join(text.value for text in app.markdown)


def test_labels_of_check_items_alone_are_not_called_unfinished(
    open_page: OpenPage, mine: Store
) -> None:
    gold = Annotation(annotator="gold", kind=AnnotatorKind.GOLD)
    mine.save_annotations("mine", [("a", gold)])
    words = "2 of 3 not finished by gold yet"
    assert words in "".join(text.value for text in open_page("export").markdown)
    change_checks(mine, "mine", {"share": 0.1})
    shown = "".join(text.value for text in open_page("export").markdown)
    assert words not in shown
    assert "2 of 3 not finished by Ann yet" in shown


def test_what_is_begun_is_a_draft(store: Store) -> None:
    begun = Annotation(annotator="Bo", kind=AnnotatorKind.PERSON, status=Status.NOT_ANNOTATED)
    items = [Item(id=name, answer="text") for name in ("one", "two")]
    store.import_records(
        "drafts", [Record(item=items[0], annotations=(begun,)), Record(item=items[1])]
    )
    (summary,) = store.datasets()
    assert summary.annotators[0].drafts == 1
    assert "0 of 2 done <span class='rest'>· 1 draft · 1 not annotated" in counts_html(
        summary, summary.annotators
    )


@pytest.mark.parametrize(
    ("format", "annotator"),
    [
        *(("spanlab", None), ("spanlab", "Ann"), ("mushroom", "Ann"), ("labelstudio", None)),
        *(
            ("claims", None),
            ("csv", None),
            ("parquet", None),
            ("huggingface", None),
            ("report", None),
        ),
    ],
)
def test_the_file_is_what_the_workflow_writes(
    open_page: OpenPage, mine: Store, format: str, annotator: str | None
) -> None:
    """Users ask that the export of a large dataset finishes."""
    app = open_page("export")
    choose(app, annotator)
    choose_format(app, format)
    app.button(key="make-export").click().run()
    path = app.session_state["spanlab.export-file"].path
    expected = exported(mine, format, *([annotator] if annotator else []))
    assert timeless(path.read_bytes()) == timeless(expected)
    assert app.download_button(key="download-export").label.startswith("Download mine")


def test_everybody_does_not_fit_into_a_mushroom_file(open_page: OpenPage, mine: Store) -> None:
    ben = Annotation(annotator="Ben", kind=AnnotatorKind.PERSON)
    mine.save_annotations("mine", [("a", ben)])
    app = open_page("export")
    choose_format(app, "mushroom")
    assert not app.error  # nobody has been chosen yet
    assert "choose whose" in app.info[0].value
    assert "The file has" not in "".join(text.value for text in app.markdown)
    assert not [button for button in app.button if button.key == "make-export"]
    choose(app, "Ben")
    assert not app.button(key="make-export").disabled


def test_the_preview_is_the_beginning_of_the_file(open_page: OpenPage, mine: Store) -> None:
    (preview,) = open_page("export").code
    assert exported(mine, "spanlab").decode().startswith(preview.value)


def test_the_preview_of_a_report_is_the_report(open_page: OpenPage, mine: Store) -> None:
    app = open_page("export")
    choose_format(app, "report")
    assert not app.code
    (frame,) = app.get("iframe")
    kind, _, data = frame.proto.src.partition(",")
    assert kind == "data:text/html;charset=utf-8;base64"  # of no origin: it cannot reach the app
    assert timeless(b64decode(data)) == timeless(exported(mine, "report"))


def test_the_preview_of_a_large_report_has_its_figures_and_the_first_items(
    open_page: OpenPage, store: Store
) -> None:
    long = [Record(item=Item(id=f"i{n}", lang="en", answer="x" * 90_000)) for n in range(9)]
    store.import_records("mine", long)
    app = open_page("export")
    choose_format(app, "report")
    (frame,) = app.get("iframe")
    shown = b64decode(frame.proto.src.partition(",")[2]).decode()
    assert len(shown) < 310_000
    assert "9 (en 9)" in shown
    assert "Preview: the first 3 items." in shown


def test_another_choice_needs_another_file(open_page: OpenPage, mine: Store) -> None:
    app = open_page("export")
    app.button(key="make-export").click().run()
    old = app.session_state["spanlab.export-file"].path
    choose_format(app, "labelstudio")
    assert app.button(key="make-export").label == "Create file"
    assert not old.exists()


def test_a_file_on_the_server_is_not_replaced_unasked(
    open_page: OpenPage, mine: Store, tmp_path: Path
) -> None:
    target = tmp_path / "out.jsonl"
    target.write_text("precious")
    app = open_page("export")
    app.text_input[0].input(str(target))
    write(app)
    assert "The file exists" in app.error[0].value
    assert target.read_text() == "precious"
    app.checkbox[0].check()
    write(app)
    assert "3 items written" in app.success[0].value
    assert target.read_bytes() == exported(mine, "spanlab")


def test_below_a_root_files_are_written_and_nothing_outside(
    open_page: OpenPage, mine: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever the server listens: a link in the directory may lead out of it."""
    config.set_option("server.address", "0.0.0.0")
    root, precious = tmp_path / "root", tmp_path / "precious"
    root.mkdir()
    precious.write_text("precious")
    (root / "link").symlink_to(precious)
    monkeypatch.setenv("SPANLAB_FILES_ROOT", str(root))
    app = open_page("export")
    app.checkbox[0].check()
    for outside in (str(precious), "../precious", "link", "x" * 300, "zero\0"):
        app.text_input[0].input(outside)
        write(app)
        assert "this path" in app.error[0].value.lower()
    app.text_input[0].input("mine.jsonl")
    write(app)
    assert (root / "mine.jsonl").read_bytes() == exported(mine, "spanlab")
    assert precious.read_text() == "precious"


@pytest.mark.system("ucsc")
def test_where_others_reach_the_server_no_path_on_it_can_be_named(
    open_page: OpenPage, mine: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPANLAB_ALLOWED_HOSTS", "review.example.org")
    monkeypatch.setenv("SPANLAB_MODEL", "none-is-asked")
    monkeypatch.setenv("OPENAI_API_KEY", "of-nobody")
    for address in ("127.0.0.1", None):
        config.set_option("server.address", address)
        assert not open_page("export").text_input
        assert not open_page("datasets").segmented_control  # nor an address that it asks
        detect = open_page("detect").checkbox(key="spanlab.detect.ucsc-extract").check().run()
        assert "A local corpus" not in detect.selectbox(key="spanlab.detect.search").options
        monkeypatch.delenv("SPANLAB_ALLOWED_HOSTS", raising=False)


def write(app: AppTest) -> None:
    (button,) = [button for button in app.button if button.label == "Write"]
    button.click().run()


def test_only_some_states_languages_and_labels_go_out(open_page: OpenPage, mine: Store) -> None:
    app = open_page("export")
    assert "The file has the labels of Ann." in "".join(text.value for text in app.markdown)
    app.multiselect(key="spanlab.export-mine.state").set_value([Status.DONE]).run()
    app.multiselect(key="spanlab.export-mine.label").set_value([""]).run()
    app.button(key="make-export").click().run()
    assert "1 item, " in "".join(text.value for text in app.caption)
    app.multiselect(key="spanlab.export-mine.state").set_value([Status.NOT_ANNOTATED]).run()
    app.button(key="make-export").click().run()
    assert "2 items, " in "".join(text.value for text in app.caption)


@pytest.mark.system("safe")
def test_forms_that_the_data_have_nothing_for_are_offered_on_request(
    open_page: OpenPage, mine: Store
) -> None:
    app = open_page("export")
    formats = app.radio(key="export-format-Labels")
    assert "Claims as CSV" not in formats.options
    (toggle,) = app.toggle
    assert toggle.label == "All formats"
    assert toggle.help == "The first items have nothing for Claims as CSV."
    toggle.set_value(True).run()
    assert "Claims as CSV" in app.radio(key="export-format-Labels").options
    claim = Claim(text="She was born in Paris.", verdict="refuted")
    mine.save_annotations(
        "mine", [("a", Annotation(annotator="judge", kind=AnnotatorKind.DETECTOR, claims=(claim,)))]
    )
    app = open_page("export")
    assert "Claims as CSV" in app.radio(key="export-format-Labels").options
    assert not app.toggle
    app.segmented_control(key="export-kind").set_value("A task's form").run()
    assert app.radio[0].options == ["Mu-SHROOM", "AVeriTeC"]
    (toggle,) = app.toggle
    assert toggle.help == "The first items have nothing for Verifier training data."
