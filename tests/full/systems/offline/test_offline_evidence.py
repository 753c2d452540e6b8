"""What `spanlab annotate FILE --detector offline` says that passages refute, and what not.

The answers and passages are made up. Each answer of the first table has one thing wrong, and its
passage says what is right in the same place; those of the second have words that only look so.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

Run = Callable[..., CompletedProcess[str]]

# Language, passage, and answer, with what is wrong in it and what stands in its place.
REFUTED = {
    "ar-number": ("ar", "يبلغ ارتفاع برج الميناء القديم 46 مترًا.", "46", "91"),
    "ca-name": ("ca", "El far vell és a la ciutat de Tarragona.", "Tarragona", "Perpinyà"),
    "cs-number": ("cs", "Starý most je dlouhý 320 metrů.", "320", "870"),
    "cs-name": ("cs", "Starý most navrhl architekt Jan Novotný.", "Jan Novotný", "Petr Dvořák"),
    "de-year": ("de", "Die alte Brücke wurde 1871 eröffnet.", "1871", "1932"),
    "de-name": ("de", "Den Turm hat Anna Bergmann entworfen.", "Anna Bergmann", "Otto Kern"),
    "en-number": ("en", "The old harbour tower is 46 metres tall.", "46", "91"),
    "en-name": ("en", "The harbour lies off the coast of New Cornwall.", "New Cornwall", "Zeeland"),
    "en-long": ("en", "It lies off the coast of Queensland.", "Queensland", "New South Wales"),
    "en-date": ("en", "The bridge was opened on 12 March 1889.", "1889", "1925"),
    "es-name": ("es", "El faro viejo está en la provincia de Cádiz.", "Cádiz", "Huelva"),
    "eu-name": ("eu", "Hiritik Nerbioi ibaia igarotzen da.", "Nerbioi", "Urumea"),
    "fa-number": ("fa", "ارتفاع برج قدیمی بندر ۴۶ متر است.", "۴۶", "۹۱"),
    "fi-year": ("fi", "Vanha majakka rakennettiin vuonna 1871.", "1871", "1932"),
    "fr-name": ("fr", "Le vieux phare se trouve dans la ville de Brest.", "Brest", "Quimper"),
    "hi-year": ("hi", "पुराने पुल का निर्माण 1871 में शुरू हुआ था।", "1871", "1932"),
    "it-number": ("it", "La vecchia torre del porto è alta 46 metri.", "46", "91"),
    "sv-name": ("sv", "Den gamla fyren ritades av Anna Lindberg.", "Anna Lindberg", "Karl Ek"),
    "zh-year": ("zh", "这座老桥于1871年建成通车。", "1871", "1932"),
}  # fmt: skip

# Language, passage, answer: neither says otherwise than the other in the same place.
NOT_REFUTED = {
    "other unit": ("en", "The crossing takes 31 hours by boat.", "The crossing is 330 km by boat."),
    "spelling of a number": (
        "en", "She ran 10000 metres in Oslo.", "She ran 10,000 metres in Oslo.",
    ),
    "year and height": ("de", "Der Turm wurde 1871 gebaut.", "Der Turm ist 93 Meter hoch."),
    "no names": ("en", "For Example the tower is red.", "With the tower it is green."),
    "part of a name": (
        "en", "The reef lies off New South Wales.", "The reef has fish and Queensland turtles.",
    ),
    "number in a name": (
        "it", "Il sistema girava su Windows 98 e su altri.", "Il più recente è ora Windows 11.",
    ),
    "list number": ("de", "Der zweite Berg ist 8.611 Meter hoch.", "1. Berg\n3. Turm\n"),
    "coordinates": ("fi", "Sijainti on 30°54'N 75°51'E.", "Sijainti on 31°53'N ja 74°59'E."),
    "nouns": (
        "de", "Das Boot lief in der Nähe von Karlsund auf Grund.",
        "Das Boot sank vor der Küste von Karlsund.",
    ),
    "spelling": (
        "fr", "La source est dans l'Hindu Kush, au nord.",
        "La source est dans l'Hindou Kouch, au nord.",
    ),
    "other event": (
        "fr", "Le club joue depuis la fondation de la Grande Ligue en 1998.",
        "Le club est né et a fait ses débuts dans la Petite Ligue en 1894.",
    ),
    "gloss": (
        "it", "Il fiume attraversa il Myanmar (Birmania) e il mare.",
        "Il fiume attraversa anche Myanmar, Thailandia e Laos.",
    ),
}  # fmt: skip


@pytest.fixture
def explained(spanlab: Run, tmp_path: Path) -> dict[str, list[dict[str, object]]]:
    """The spans of all cases, by the case's name."""
    cases = {
        name: (lang, passage, passage.replace(right, wrong))
        for name, (lang, passage, right, wrong) in REFUTED.items()
    } | NOT_REFUTED
    lines = (
        {"id": name, "lang": lang, "answer": answer, "passages": [{"text": passage}]}
        for name, (lang, passage, answer) in cases.items()
    )
    file = tmp_path / "items.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    ran = spanlab("annotate", file, "--detector", "offline", "-o", "out.jsonl")
    assert ran.returncode == 0, ran.stderr
    records = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    return {record["id"]: record["annotations"][0]["spans"] for record in records}


def _quotes(spans: list[dict[str, object]]) -> list[dict[str, str]]:
    return [quote for span in spans for quote in span.get("evidence", [])]  # type: ignore[attr-defined]  # JSON


def test_what_stands_in_the_same_place_refutes_and_nothing_else_does(
    explained: dict[str, list[dict[str, object]]],
) -> None:
    assert all(explained.values())
    said = {
        name: {quote["note"] for quote in _quotes(explained[name]) if quote["stance"] == "refutes"}
        for name in explained
    }
    assert said == {
        name: {f"says “{right}”, not “{wrong}”"} for name, (_, _, right, wrong) in REFUTED.items()
    } | {name: set() for name in NOT_REFUTED}


def test_stance_and_words_agree(explained: dict[str, list[dict[str, object]]]) -> None:
    for name, spans in explained.items():
        for span in spans:
            quotes = _quotes([span])
            refuting = [quote for quote in quotes if quote["stance"] == "refutes"]
            assert refuting == [quote for quote in quotes if "says “" in quote.get("note", "")], (
                name
            )
            if refuting:
                assert "note" not in span, name
                assert refuting == quotes, name
