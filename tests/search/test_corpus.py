"""Corpora as people have them: JSON Lines, and directories of text and HTML in any encoding."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from spanlab.base.errors import InputError
from spanlab.search.corpus import CorpusDocument, read_documents
from spanlab.search.html import read_html


def test_json_lines(tmp_path: Path) -> None:
    corpus = tmp_path / "c.jsonl"
    corpus.write_text(
        '{"text": "One.", "title": "T", "url": "https://a.example", "date": "2024", "id": 7}\n'
        "\n"
        '{"text": "  "}\n'
        '{"text": "Two\\u2028lines.", "views": 3}\n',
        encoding="utf-8-sig",
    )
    assert list(read_documents(corpus)) == [
        CorpusDocument("One.", "7", "T", "https://a.example", "2024"),
        CorpusDocument("Two\u2028lines.", f"{corpus}:4"),
    ]


def test_packed_json_lines(tmp_path: Path) -> None:
    corpus = tmp_path / "c.jsonl.gz"
    corpus.write_bytes(gzip.compress(b'{"text": "One."}\n'))
    assert [document.text for document in read_documents(corpus)] == ["One."]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        pytest.param('{"title": "x"}', r"c\.jsonl, line 2, text: the field is missing", id="text"),
        pytest.param('{"text": 7}', r"c\.jsonl, line 2, text: .*found 7", id="number"),
        pytest.param('{"text": "a", "url": []}', r"c\.jsonl, line 2, url: .*", id="url"),
        pytest.param('{"text": "a"', r"c\.jsonl, line 2: not valid JSON", id="cut off"),
        pytest.param('["a"]', r"c\.jsonl, line 2: expected an object", id="no object"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    corpus = tmp_path / "c.jsonl"
    corpus.write_text(f'{{"text": "fine"}}\n{line}\n', encoding="utf-8")
    with pytest.raises(InputError, match=message):
        list(read_documents(corpus))


def test_a_directory_in_order_and_in_any_encoding(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.txt").write_bytes("Größe".encode("latin-1"))
    (tmp_path / "b.md").write_text("# Höhe", encoding="utf-8-sig")
    (tmp_path / "c.TXT").write_text("Länge", encoding="utf-16")
    (tmp_path / "empty.txt").write_text(" ")
    (tmp_path / "ignored.pdf").write_bytes(b"%PDF")
    (tmp_path / "sub" / "d.html").write_text("<title>T</title><p>Breite", encoding="utf-8")
    assert [(each.text, each.title, each.source) for each in read_documents(tmp_path)] == [
        ("Größe", "a", "a.txt"),
        ("# Höhe", "b", "b.md"),
        ("Länge", "c", "c.TXT"),
        ("Breite", "T", str(Path("sub/d.html"))),
    ]


def test_an_encoding_is_guessed_from_enough_text(tmp_path: Path) -> None:
    text = "Эйфелева башня — металлическая башня в центре Парижа. Её высота 330 метров. " * 5
    (tmp_path / "a.txt").write_bytes(text.encode("cp1251"))
    assert [each.text for each in read_documents(tmp_path)] == [text]


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\x00\x01\x02")
    with pytest.raises(InputError, match=r"a\.txt: the file is not text"):
        list(read_documents(tmp_path))


def test_a_directory_without_texts_and_a_missing_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no files to index; expected files ending in \.txt"):
        list(read_documents(tmp_path))
    with pytest.raises(InputError, match=r"nowhere\.jsonl: there is no such file"):
        list(read_documents(tmp_path / "nowhere.jsonl"))


def test_a_page_without_its_machinery() -> None:
    found = read_html(
        b"""<!doctype html><html><head><title>The
        tower</title><link rel="canonical" href="https://a.example/tower"><style>p{}</style></head>
        <body><nav><a>Home</a></nav><h1>Tower</h1><p>It is <b>330</b>
        metres tall.<br>Really.</p><!-- secret --><script>alert(1)</script>
        <table><tr><td>Height</td><td>330 m</td></tr></table></body></html>"""
    )
    assert found.title == "The tower"
    assert found.url == "https://a.example/tower"
    assert found.text.split("\n\n") == [
        "Tower",
        "It is 330 metres tall.",
        "Really.",
        "Height 330 m",
    ]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        pytest.param(b"", "", id="empty"),
        pytest.param(b"<p>a<p>b<div>c", "a\n\nb\n\nc", id="open tags"),
        pytest.param(b"a &lt;b&gt; &amp; c", "a <b> & c", id="entities"),
        pytest.param('<meta charset="windows-1251"><p>да'.encode("cp1251"), "да", id="declared"),
        pytest.param(b"<script>only</script>", "", id="nothing to read"),
    ],
)
def test_pages_as_they_are_found(data: bytes, text: str) -> None:
    assert read_html(data).text == text


@pytest.mark.parametrize(
    ("unit", "text"),
    [
        pytest.param(b"<div>", "", id="elements in each other"),
        pytest.param(b"<p>a", "a\n\na", id="paragraphs that do not end"),
        pytest.param(b"<a ", "", id="tags that do not end"),
        pytest.param(b'<a b="', "", id="quotes that do not end"),
        pytest.param(b"<!--", "", id="comments that do not end"),
        pytest.param(b"<b></i>", "", id="ends of what is not open"),
        pytest.param(b"&#" + b"9" * 20, "\ufffd\ufffd", id="numbers of no character"),
    ],
)
def test_a_page_costs_its_length_whatever_its_markup(unit: bytes, text: str) -> None:
    """A reader whose cost grows with the square would take hours for these."""
    found = read_html(b"<body>" + unit * 100_000).text

    assert found.startswith(text)
    assert bool(found) == bool(text)


def test_a_quoted_attribute_may_hold_markup() -> None:
    assert read_html(b"""<p title="a > b <i>" data-x='<p>"no"</p>'>yes</p>""").text == "yes"


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<p hidden>Built 1800.<p>Built 1801.</p>", "Built 1801."),
        ("<div style='color: red; display: none'><p>1800</p></div><p>1801</p>", "1801"),
        ("<p>one<div HIDDEN>two<p>three</div>four", "one\n\nfour"),
        ("<p class='hidden' title='hidden'>1801</p>", "1801"),
        ("<span aria-hidden='true'>1801</span>", "1801"),
        ("<ul><li hidden>1800<li>1801</ul>", "1800\n\n1801"),  # which end is not known
        ("<body style='display:none'><p>1801</p>", "1801"),  # until a script shows it
    ],
)
def test_what_readers_do_not_see_is_no_text_of_the_page(page: str, text: str) -> None:
    assert read_html(page.encode()).text == text
