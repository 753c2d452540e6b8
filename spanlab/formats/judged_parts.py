"""Parts of answers that are judged: which columns they are, and where they stand in the answer.

    "sentences": [{"text": …, "label": "hallucinated"}]            a verdict in each part
    "sentences": [text, …], "sentence_labels": ["supported", …]    verdicts beside the parts
    "tokens": ["It", "was", …], "labels": [0, 0, 1] or "O", "B-X"  of tokens, 1 is what is marked
    "claims": [{"claim": …, "verdict": "refuted"}]                 claims, with what is said of them
    "sentences": [text, …], "labels": [{"ann": ["EntE"], "bob": "NoE"}, …]      by several people

A sentence or token that is not right is a span, tokens beside each other one, with the kind of
error as its label. A claim stays one, with the words that it was taken from where they stand in the
answer, which are marked if it is not right. A part that does not stand there is a claim without a
place; of repeated texts the order says which is meant. Parts of several annotators are each one's.
Where there is no answer beside them, sentences and tokens are the answer.

Some published files have forms of their own, which a recipe names (``judged``):

    {"prompt", "response", "segmented_response": [text, …], "labels": [true, …], "type", "comment"}
    {"response", "response_sentences": [[key, …], …], "unsupported_response_sentence_keys": [key]}
    {"input", "output", "annotations": [{"text", "human-atomic-facts": [{"text", "label": "NS"}]}]}
    {"gpt3_text", "gpt3_sentences": [text, …], "annotation": ["accurate", "major_inaccurate", …]}
    {"prompt", "output", "annotated": "… <entity><mark>1889</mark><delete>1989</delete></entity>"}

Words that FAVA deletes or puts in a tag alone are wrong, what it inserts between ``<mark>`` is not
in the answer. A fact is a claim, with the sentence that it was taken from.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, zip_longest
from typing import Any, Final, NamedTuple

from spanlab.base.errors import InputError
from spanlab.formats.cells import people_in
from spanlab.formats.columns import Samples, value_at, words_of
from spanlab.formats.quotes import span_at
from spanlab.formats.reader import is_missing, parse_list
from spanlab.formats.verdict_columns import (
    Polarity,
    Rules,
    VerdictColumn,
    as_said_by,
    counts_in_words,
    described,
    may_judge,
    named_values,
    not_understood,
)
from spanlab.formats.verdict_words import OF_CLAIMS, VERDICTS, plain_word, verdict_of
from spanlab.formats.vocabulary import named_by, words_in
from spanlab.schema import HALLUCINATED, Annotation, AnnotatorKind, Claim, Span, Verdict

_PARTS: Final = named_by("judged_parts")  # "segments" → "sentences", "atomic facts" → "claims"
_ANSWERS: Final = words_in("parts", "answers")
_OWNERS: Final = frozenset((*_ANSWERS, *words_in("parts", "model")))
_TEXTS: Final = frozenset(words_in("of_judged_parts", "texts"))
_LABELS: Final = frozenset(words_in("of_judged_parts", "labels"))
_LABELLED: Final = _OWNERS | {
    *_TEXTS,
    *_PARTS,
    "bio",
    "gold",
    "is",
}  # whose labels: "sentence labels"
_KINDS: Final = frozenset(words_in("of_judged_parts", "kinds"))  # of error
_NOTES: Final = words_in("of_judged_parts", "notes")
_TAG: Final = re.compile(r"O|[BILUES](?:-(?P<kind>.+))?")  # of a token: outside, beginning, inside
_MEANS: Final[dict[str, Polarity]] = {
    "claims": "good",
    "tokens": "bad",
}  # what yes says where no name does
_BEFORE_WORDS: Final = ("▁", "Ġ")  # what tokenizers write for a space
_PIECE: Final = re.compile(rf"^(?:##|{'|'.join(_BEFORE_WORDS)})")
_UNSPACED: Final = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff]")


class JudgedPart(NamedTuple):
    """A part of an answer: its text, and what is said of it."""

    text: str
    verdict: Verdict | None = None
    label: str | None = None
    note: str | None = None

    @property
    def is_wrong(self) -> bool:
        """Whether it counts as hallucinated."""
        return self.verdict in HALLUCINATED


def gold_of_parts(parts: Iterable[JudgedPart], answer: str, column: str) -> Annotation:
    """Return gold labels at the places of parts that follow each other in an answer."""
    spans: list[Span] = []
    claims: list[Claim] = []
    for part, start in _in_order(parts, answer):
        if part.is_wrong and start < 0:
            claims.append(Claim(text=part.text.strip(), verdict="not-supported", note=part.note))
        elif part.is_wrong:
            end = start + len(part.text)
            spans.append(span_at(answer, start, end, column, label=part.label, note=part.note))
    return gold_of(spans, claims)


def _in_order(parts: Iterable[JudgedPart], answer: str) -> Iterator[tuple[JudgedPart, int]]:
    """Yield parts with where each starts behind those before it; -1 for one that does not."""
    at = 0
    for part in parts:
        start = answer.find(part.text, at) if part.text else -1
        at = at if start < 0 else start + len(part.text)
        yield part, start


def gold_of(spans: Sequence[Span], claims: Sequence[Claim]) -> Annotation:
    """Return gold labels; an answer with a wrong part is hallucinated, wherever that part is."""
    marked = {(span.start, span.end) for span in spans}
    wrong = (claim.source for claim in claims if claim.verdict in HALLUCINATED)
    is_wrong = any(s is None or (s.start, s.end) not in marked for s in wrong)
    return Annotation(
        annotator="gold",
        kind=AnnotatorKind.GOLD,
        answer_hallucinated=is_wrong or None,
        spans=spans,
        claims=claims,
    )


@dataclass(frozen=True)
class JudgedParts:
    """The columns that have parts of answers and what is said of each.

    Args:
        kind: "sentences", "tokens" or "claims".
        texts: the column of the parts.
        labels: the column of verdicts beside them; "" where each part has its own.
        text: the field of a part with its text; "" for parts that are texts.
        key: the field of a part with its verdict, for parts that have their own.
        verdict: how verdicts are read; its name is their path.
        counts: how many parts each verdict was given to.
    """

    kind: str
    texts: str
    labels: str
    text: str
    key: str
    verdict: VerdictColumn
    counts: Counter[bool | None] = field(default_factory=Counter)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""
        return tuple(filter(None, (self.texts, self.labels)))

    def answer(self, cells: Mapping[str, Any]) -> str:
        """Return the parts of a record as the answer that they are."""
        raw = [self._raw(part) for part in self._listed(cells)[0]]
        if self.kind == "tokens" and any(text[:1] in _BEFORE_WORDS for text in raw):
            return "".join(_PIECE.sub(" ", text) for text in raw).strip()
        is_spaced = any(text[:1].isspace() or text[-1:].isspace() for text in raw)
        n_unspaced = sum(bool(_UNSPACED.match(text)) for text in raw)
        between = "" if is_spaced or 2 * n_unspaced > len(raw) else " "
        joined = between.join(raw).strip()
        return joined.replace(f"{between}##", "") if self.kind == "tokens" else joined

    def annotations(self, cells: Mapping[str, Any], answer: str) -> Iterator[Annotation]:
        """Yield what is said of a record's parts, by annotator; nothing if it has none.

        Raises:
            InputError: there is not a verdict for each part, or one is not known.
        """
        parts, labels = self._listed(cells)
        said_by = {name: (own, labels) for name, own in people_in(parts).items()}
        if names := dict.fromkeys(chain.from_iterable(filter(_is_by_name, labels))):
            said_by = {
                n: (parts, [by_name.get(n) if _is_by_name(by_name) else None for by_name in labels])
                for n in names
            }
        for name, (own, said) in said_by.items():
            yield as_said_by(name, self._gold(list(self._parts(own, said)), answer))

    def told(self) -> Iterator[str]:
        """Yield what was read, with counts."""
        if self.counts:
            yield f"{self.verdict.name!r} judges {self.kind}: {counts_in_words(self.counts)}"

    def _listed(self, cells: Mapping[str, Any]) -> tuple[list[Any], list[Any]]:
        parts = parse_list(value_at(cells, self.texts)) or []
        labels = parse_list(value_at(cells, self.labels)) if self.labels else None
        if not isinstance(parts, list) or not isinstance(labels, list | None):
            raise InputError(
                "this must be a list", field=self.texts, expected=f"a list of {self.kind}"
            )
        if labels is not None and len(labels) != len(parts):
            raise InputError(
                f"there is not one verdict for each of the {self.kind}",
                field=self.labels,
                found=f"{len(parts)} in {self.texts}, {len(labels)} here",
                expected="lists of the same length",
            )
        return parts, labels or []

    def _parts(self, parts: Sequence[Any], labels: Sequence[Any]) -> Iterator[JudgedPart]:
        for n, part in enumerate(parts):
            own = part if isinstance(part, Mapping) else {}
            said = labels[n] if labels else own.get(self.key)
            words = [word for word in _each(said) if not is_missing(word)]
            verdicts = list(map(self._meaning, words))
            verdict = next((v for v in verdicts if v in HALLUCINATED), next(iter(verdicts), None))
            kinds = [str(word) for word in words if plain_word(word) in _KINDS]
            label = ", ".join(kinds) or None
            if verdict and self.kind == "tokens" and (tag := _TAG.fullmatch(str(said))):
                label = None if _says_wrong(tag["kind"] or "hal") else tag["kind"]
            self.counts[None if verdict is None else verdict in HALLUCINATED] += 1
            notes = (own[name] for name in _NOTES if isinstance(own.get(name), str) and own[name])
            yield JudgedPart(self._text(part), verdict, label, next(notes, None))

    def _raw(self, part: Any) -> str:
        return str((part.get(self.text) if isinstance(part, Mapping) else part) or "")

    def _text(self, part: Any) -> str:
        return _PIECE.sub("", self._raw(part)) if self.kind == "tokens" else self._raw(part)

    def _meaning(self, value: Any) -> Verdict | None:
        """Return what a verdict says of a part; raises InputError for one that is not known."""
        if is_missing(value):
            return None
        if not self.verdict.rules:
            tag = _TAG.fullmatch(str(value)) if self.kind == "tokens" else None
            if tag and not self._may_be_entities(tag["kind"]):
                return "supported" if value == "O" else "not-supported"
            nameless = self.kind == "claims" and self.verdict.criterion == "label"
            word = plain_word(value)
            known = (OF_CLAIMS if nameless else VERDICTS).get(word)
            if known is not None or word in _KINDS:
                return known or "not-supported"
        wrong = self.verdict.meaning(value)
        return None if wrong is None else "not-supported" if wrong else "supported"

    def _may_be_entities(self, kind: str | None) -> bool:
        """Say whether tags of a kind may name entities: neither they nor the column say wrong."""
        named = (kind, *words_of(self.verdict.name).split()) if kind else ()
        return bool(named) and not any(map(_says_wrong, filter(None, named)))

    def knows(self, value: Any) -> bool:
        """Say whether a value is a verdict, or judges nothing."""
        try:
            self._meaning(value)
        except InputError:
            return False
        return True

    def ruled(self, rules: Rules) -> JudgedParts | None:
        """Return the parts as people say that their verdicts are read; None if they do not."""
        rule = rules.get(self.verdict.name)
        verdict = replace(self.verdict, rules=tuple(rule or ()))
        return replace(self, verdict=verdict) if rule else None

    def _gold(self, parts: Sequence[JudgedPart], answer: str) -> Annotation:
        if self.kind == "tokens":
            parts = list(_tokens_joined(parts, answer))
        if self.kind != "claims":
            return gold_of_parts(parts, answer, self.texts)
        claims = [_claim(part, answer) for part in parts]
        wrong = {c.source: None for c in claims if c.source and c.verdict in HALLUCINATED}
        return gold_of(sorted(wrong, key=lambda span: (span.start, span.end)), claims)


def _is_by_name(said: Any) -> bool:
    """Say whether what is said of a part is what each of several people says of it."""
    return isinstance(said, Mapping) and bool(said)


def _each(said: Any) -> list[Any]:
    return said if isinstance(said, list) else [said]


def _claim(part: JudgedPart, answer: str) -> Claim:
    start = answer.find(part.text) if part.text else -1
    source = Span.of(answer, start, start + len(part.text)) if start >= 0 else None
    return Claim(text=part.text, source=source, verdict=part.verdict, note=part.note)


def _tokens_joined(tokens: Iterable[JudgedPart], answer: str) -> Iterator[JudgedPart]:
    """Yield wrong tokens that stand beside each other as one part, and all others as they are."""
    joined: JudgedPart | None = None
    begin = end = 0
    for token, start in _in_order(tokens, answer):
        is_next = joined is not None and start >= 0 and not answer[end:start].strip()
        if joined is not None and not (is_next and token[1:] == joined[1:]):
            yield joined
            joined = None
        if token.is_wrong and start >= 0:
            begin, end = begin if joined is not None else start, start + len(token.text)
            joined = token._replace(text=answer[begin:end])
        else:
            yield token
    if joined is not None:
        yield joined


def _says_wrong(kind: str) -> bool:
    """Say whether the kind of a tag says no more than that something is wrong."""
    word = plain_word(kind)
    return word.startswith("hal") or VERDICTS.get(word) in HALLUCINATED


def part_kind(column: str) -> str:
    """Return what parts of answers a column may have by its name; "" for another one."""
    words = words_of(column).split()
    owned = next((n for n, word in enumerate(words) if word not in _OWNERS), len(words))
    if words and owned == len(words) and words[-1] in _ANSWERS:
        return "sentences"
    return _PARTS.get(" ".join(words[owned:]), "")


def _kind_of_one(column: str) -> str:
    return part_kind(f"{words_of(column).removesuffix(' text')}s")


def may_be_part(column: str) -> bool:
    """Say whether a column is called like one part of an answer, as "claim" is."""
    return bool(_kind_of_one(column))


def is_answer_in_parts(column: str) -> bool:
    """Say whether a column is called like parts that are an answer, if there is none beside it."""
    return part_kind(column) in ("sentences", "tokens")


def judged_parts_in(
    samples: Samples, taken: Iterable[str], rules: Rules | None
) -> tuple[JudgedParts | None, str]:
    """Return the columns of judged parts, and a remark on such that are not read; "" for none.

    Args:
        samples: some records.
        taken: columns that are read as something else.
        rules: what people say of columns: others judge nothing then; None for nothing.

    Raises:
        InputError: some verdicts are known, and others are not.
    """
    remark = ""
    names = dict.fromkeys(name for sample in samples for name in sample)
    for name in names:
        kind = "" if name in taken else part_kind(name)
        for parts in _candidates(kind, name, names, samples) if kind else ():
            if rules is not None:
                if (ruled := parts.ruled(rules)) is not None:
                    return ruled, ""
                continue
            unknown = [value for value in parts.verdict.values if not parts.knows(value)]
            if not unknown:
                return parts, ""
            are_tags = kind == "tokens" and all(_TAG.fullmatch(str(value)) for value in unknown)
            if len(unknown) < len(parts.verdict.values) and not are_tags:
                raise not_understood(parts.verdict.name, unknown)
            shown = f"{parts.verdict.name!r} ({named_values(unknown)})"
            remark = may_judge(shown, parts.verdict.name, kind)
    return None, remark


def _candidates(
    kind: str, name: str, names: Iterable[str], samples: Samples
) -> Iterator[JudgedParts]:
    """Yield the ways in which a column of parts may be judged: in them, or beside them."""
    lists = [parse_list(sample.get(name)) for sample in samples]
    parts = [part for listed in lists if isinstance(listed, list) for part in listed]
    if not parts or not all(isinstance(one, list) or is_missing(one) for one in lists):
        return
    if all(isinstance(part, Mapping) for part in parts):
        keys = dict.fromkeys(key for part in parts for key in part)
        text = next((key for key in keys if words_of(key) in _TEXTS), "")
        if text and all(isinstance(part.get(text), str) for part in parts):
            for key in keys:
                values = [part.get(key) for part in parts]
                verdict = _verdict(kind, f"{name}.{key}", key, values) if key != text else None
                if verdict is not None:
                    yield JudgedParts(kind, name, "", text, key, verdict)
        return
    if not all(isinstance(part, str) for part in parts):
        return
    for other in names:
        beside = [parse_list(sample.get(other)) for sample in samples]
        pairs = [(a, b) for a, b in zip(lists, beside, strict=True) if isinstance(a, list)]
        n_as_long = sum(isinstance(b, list) and len(b) == len(a) for a, b in pairs)
        # A wrong record is one to be told of.
        are_beside = 2 * n_as_long >= len(pairs)
        said = [v for b in beside if isinstance(b, list) for v in b] if are_beside else []
        values = [v for one in said for v in (one.values() if _is_by_name(one) else [one])]
        verdict = _verdict(kind, other, other, values) if other != name else None
        if verdict is not None:
            yield JudgedParts(kind, name, other, "", "", verdict)


def _verdict(kind: str, path: str, name: str, values: Sequence[Any]) -> VerdictColumn | None:
    """Return how the verdicts of parts are read; None for a column that has none."""
    values = [v for value in values for v in _each(value) if not is_missing(v)]
    if not values or not all(isinstance(value, str | int | float) for value in values):
        return None
    *owners, last = words_of(name).split() or [""]
    wrong = set(filter(_says_wrong, owners))  # "hallucination tags"
    if last in _LABELS and _LABELLED.issuperset(set(owners) - wrong):
        means: Polarity = "bad" if wrong else _MEANS.get(kind, "")
        return VerdictColumn(path, "label", (), means, tuple(values))
    column = described(name, values)
    if column is None or not column.has_known_owner or column.is_scale:
        return None
    return VerdictColumn(path, column.criterion, (), column.polarity, tuple(values))


def judged_rows(
    column: str, verdicts: str, samples: Samples, rules: Rules | None
) -> JudgedParts | None:
    """Return how the parts are read that a row has one of; None if it has none.

    Args:
        column: that of the part, as "claim".
        verdicts: that of its verdict; the parts will be objects with these two.
        samples: some rows.
        rules: as for ``judged_parts_in``.
    """
    kind = _kind_of_one(column)
    values = [sample.get(verdicts) for sample in samples]
    verdict = _verdict(kind, verdicts, verdicts, values) if kind and column != verdicts else None
    if verdict is None or not all(isinstance(s.get(column), str | None) for s in samples):
        return None
    parts = JudgedParts(kind, kind, "", column, verdicts, verdict)
    if rules is not None:
        return parts.ruled(rules)
    return parts if all(map(parts.knows, verdict.values)) else None


_FACTS, _INSERTED, _DELETED = "human-atomic-facts", "mark", "delete"
_MARKUP: Final = re.compile(r"<(/?)(\w+)>")


def _said(*, is_wrong: bool) -> Verdict:
    return "not-supported" if is_wrong else "supported"


def _beside(judged: Mapping[str, Any], line: Mapping[str, Any]) -> Iterator[JudgedPart]:
    """Yield the parts in lists beside each other, whose columns a recipe names."""
    names = (judged.get(name, "") for name in ("texts", "verdicts", "labels", "notes"))
    columns = (parse_list(line.get(name)) or [] for name in names)
    for text, said, label, note in zip_longest(*columns):
        verdict = _said(is_wrong=plain_word(said) not in judged["right"])
        yield JudgedPart(text or "", verdict, label or None, note or None)


def _keyed(line: Mapping[str, Any]) -> Iterator[JudgedPart]:
    wrong = parse_list(line.get("unsupported_response_sentence_keys")) or ()
    for key, text in parse_list(line["response_sentences"]):
        yield JudgedPart(text, _said(is_wrong=key in wrong))


def _facts(line: Mapping[str, Any], answer: str) -> Iterator[Claim]:
    for n, sentence in enumerate(parse_list(line["annotations"]) or ()):
        source = _claim(JudgedPart(sentence.get("text") or ""), answer).source
        for fact in sentence.get(_FACTS) or ():
            if fact.get("label") != "IR":  # irrelevant: neither true nor false
                verdict = verdict_of(fact["label"], field=f"annotations.{n}.{_FACTS}.label")
                yield Claim(text=fact["text"], source=source, verdict=verdict)


def _in_tags(line: Mapping[str, Any]) -> Iterator[JudgedPart]:
    """Yield the pieces of a text without its tags and insertions."""
    tagged = line["annotated"]
    open_tags: list[str] = []
    at = 0
    for tag in (*_MARKUP.finditer(tagged), None):
        text = tagged[at : tag.start() if tag else None]
        kinds = [name for name in open_tags if name not in (_INSERTED, _DELETED)]
        if text and _INSERTED not in open_tags:
            verdict = _said(is_wrong=bool(open_tags and text.strip()))
            yield JudgedPart(text, verdict, kinds[-1] if kinds else None)
        if tag is None:
            return
        at = tag.end()
        if not tag[1]:
            open_tags.append(tag[2])
        elif tag[2] in open_tags:
            open_tags.remove(tag[2])


class PublishedParts(NamedTuple):
    """Judged parts in the form of one published file; ``columns`` are those that they are in."""

    columns: tuple[str, ...]
    read: Callable[[Mapping[str, Any]], Iterator[JudgedPart]] | None
    texts: str = ""

    def annotations(self, cells: Mapping[str, Any], answer: str) -> Iterator[Annotation]:
        """Yield the gold labels of a record."""
        if self.read is not None:
            yield gold_of_parts(self.read(cells), answer, self.columns[0])
        elif isinstance(parse_list(cells.get("annotations")), list):
            yield gold_of((), tuple(_facts(cells, answer)))

    def told(self) -> Iterator[str]:
        """Say nothing: the recipe is named."""
        return iter(())


_PUBLISHED: Final = {
    "sentences": PublishedParts(
        ("response_sentences", "unsupported_response_sentence_keys"), _keyed
    ),
    "facts": PublishedParts(("annotations",), None),
    "tags": PublishedParts(("annotated",), _in_tags),
}


def published_parts(recipe: Mapping[str, Any]) -> PublishedParts | None:
    """Return how parts are judged in the files of a recipe: in a form by name, or in lists."""
    judged = recipe.get("judged", "")
    if isinstance(judged, str):
        return _PUBLISHED.get(judged)
    columns = tuple(column for name, column in judged.items() if name != "right")
    return PublishedParts(columns, partial(_beside, judged))
