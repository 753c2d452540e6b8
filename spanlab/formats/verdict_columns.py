"""Columns that judge whole answers: which they are, who judged, and what their values mean.

A column is understood as a whole. Its name says what yes means ("hallucinated", "is_correct"), or
its values do ("PASS", "unfaithful"). 0 and 1 under a name that does not say it ("label"), and a
column of which only some values are known, are refused with the option that says it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import ge, gt, le, lt
from typing import Any, Final, Literal, NamedTuple

from spanlab.base.errors import InputError, UsageError
from spanlab.base.options import OptionModel, option
from spanlab.formats.columns import Samples, paths, value_at, words_of
from spanlab.formats.reader import is_missing, parse_object
from spanlab.formats.verdict_words import (
    NO,
    UNDECIDED,
    VERDICTS,
    YES,
    are_verdicts,
    plain_word,
    tells,
    yes_or_no,
)
from spanlab.formats.vocabulary import words_in
from spanlab.schema import HALLUCINATED, Annotation, AnnotatorKind

Polarity = Literal["bad", "good", ""]  # what yes says of the answer; "" where the name does not say
_BAD, _GOOD, _MEASURES, _NAMELESS = (
    words_in("judged", name) for name in ("bad", "good", "measures", "nameless")
)
_CRITERIA: Final = (*_BAD, *_GOOD, *_MEASURES, *_NAMELESS)  # the first one counts before others
_FILLERS, _NOUNS, _PEOPLE, _COUNTING, _QUALITIES, _REMARKS, _ASPECTS = (
    frozenset(words_in("judged", name))
    for name in ("fillers", "nouns", "people", "counting", "qualities", "remarks", "aspects")
)
_OPPOSITES: Final = dict(
    zip(words_in("judged", "votes_for"), words_in("judged", "votes_against"), strict=True)
)
_NEGATED: Final = re.compile(r"\b(?:not|non) (\w+)")
_JUDGES: Final = re.compile(rf"(?:{'|'.join(words_in('judged', 'programs'))})\w*")
_COUNTED: Final = re.compile(r"\d+\w?|[a-z]")  # which of several: "judge 1", "judge b", "gpt 4o"
_THUMBS: Final = frozenset(("thumbs", "thumb", "feedback"))  # which users give
_FED_BACK: Final[dict[str, bool | None]] = {"positive": False, "negative": True, "neutral": None}
_RULE: Final = re.compile(r"(.+?)\s*(<=|>=|<|>|=)\s*(.+)")
_ORDERS: Final[dict[str, Callable[[float, float], bool]]] = {"<": lt, "<=": le, ">": gt, ">=": ge}
_IN_BRACKETS: Final = re.compile(r"\([^()]*\)$|\[[^\[\]]*\]$")
_LIST_OF_ONE: Final = re.compile(r"\[\s*(\"?)([^\[\]{}\",]*)\1\s*\]")
_SHOWN: Final = 6  # values that a message names
_SHORT: Final = 30  # characters of a value that may be a class
_STARS: Final = re.compile("[★⭐]+☆*|☆+")
_NONE: Final = "none"  # as a rule: no column is read


_TRUTHS: Final = {"true": "1", "false": "0"}  # which tables and programs write either way


def _told_word(value: object) -> str:
    """Return a value as rules have it."""
    word = plain_word(value)
    return _TRUTHS.get(word, word)


class VerdictOptions(OptionModel):
    """What verdicts on whole answers say."""

    hallucinated_if: tuple[str, ...] = option(
        (),
        title="Hallucinated if",
        help="What a column of verdicts on whole answers says: label=bad,wrong where these values "
        "mean hallucinated and all others do not, score<0.5 for numbers, none to read no verdicts. "
        "By default it is told from names and values. Repeatable.",
        placeholder="for example label=bad",
    )


@dataclass(frozen=True)
class HallucinatedIf:
    """What people say of a column: these values, or numbers on this side, mean hallucinated.

    ``met`` are the values of it that were there, ``others`` the first of those that were not meant.
    """

    column: str
    sign: str
    values: tuple[str, ...]
    met: set[str] = field(default_factory=set, compare=False)
    others: dict[str, None] = field(default_factory=dict, compare=False)

    def applies(self, value: object) -> bool:
        """Say whether a value means hallucinated.

        Raises:
            InputError: it is a list of several, or no number to compare.
        """
        if isinstance(value, list):
            raise InputError(
                "--hallucinated-if compares one value, and this is a list",
                field=self.column,
                found=value,
                expected=f"a column of single values; {self.column}.0=VALUE is about the first of "
                f"a list, {self.column}.1=VALUE about the second",
            )
        if self.sign == "=":
            word = _told_word(value)
            if word in map(_told_word, self.values):
                self.met.add(word)
                return True
            if len(self.others) <= _SHOWN:
                self.others[str(value)] = None
            return False
        number = _number(value)
        if number is None:
            raise InputError(
                "--hallucinated-if compares this, and it is not a number",
                field=self.column,
                found=value,
                expected="a number",
            )
        return _ORDERS[self.sign](number, float(self.values[0]))

    def told(self) -> str:
        """Return which of its values was nowhere in a file that has been read; "" for none."""
        unmet = [value for value in self.values if _told_word(value) not in self.met]
        if self.sign != "=" or not unmet or not (self.met or self.others):
            return ""
        so = "" if self.met else ", so it calls no answer hallucinated"
        there = named_values([*sorted(self.met), *self.others])
        return (
            f"--hallucinated-if {self.column}={','.join(self.values)}: {self.column!r} is nowhere "
            f"{' or '.join(map(repr, unmet))}{so}; its values are {there}"
        )


def rule_in(text: str) -> HallucinatedIf:
    """Return what ``label=bad,wrong`` or ``score<0.5`` says; raises UsageError for neither."""
    rule = _RULE.fullmatch(text.strip())
    if rule is None or (rule[2] != "=" and _number(rule[3]) is None):
        raise UsageError(
            "--hallucinated-if must be column=value, column<number or none, such as label=bad or "
            f"score<0.5, got {text!r}"
        )
    values = tuple(map(plain_word, rule[3].split(","))) if rule[2] == "=" else (rule[3],)
    return HallucinatedIf(rule[1], rule[2], values)


Rules = Mapping[str, Sequence[HallucinatedIf]]  # by the column they are about


def rules_in(texts: Sequence[str]) -> Rules | None:
    """Return rules, of which ``none`` is about no column; None without any.

    Raises:
        UsageError: one says nothing.
    """
    rules: dict[str, list[HallucinatedIf]] = {}
    for text in texts:
        if text.strip().casefold() != _NONE:
            rule = rule_in(text)
            rules.setdefault(rule.column, []).append(rule)
    return rules if texts else None


class _Judge(NamedTuple):
    annotator: str
    kind: AnnotatorKind


@dataclass(frozen=True)
class VerdictColumn:
    """A column of verdicts: what its name says, who judged, and its values among the samples."""

    name: str
    criterion: str
    owner: tuple[str, ...] = ()
    polarity: Polarity = ""
    values: tuple[Any, ...] = field(default=(), repr=False)
    rules: tuple[HallucinatedIf, ...] = ()
    against: str = ""  # the column of those who say the opposite, where each has its own
    is_one_thumb: bool = False  # whether a column of its own would say the opposite: no is nothing
    known_judge: _Judge | None = None
    note: str = ""  # the path of what says why
    is_by_name: bool = False  # whether it holds verdicts by the names of those who judged

    @property
    def names(self) -> tuple[str, ...]:
        """Its name, and that of the column of the opposite."""
        return (self.name, self.against) if self.against else (self.name,)

    @property
    def judge(self) -> _Judge:
        """Who judged, by the words of the column's name: gold labels where it names nobody."""
        if self.known_judge:
            return self.known_judge
        spelled = {word.lower(): word for word in re.findall(r"[^\W_]+", self.name)}
        known = (w if _names_kind(w) else spelled.get(w, w) for w in self.owner)
        name = " ".join(known)
        if any(map(_JUDGES.fullmatch, self.owner)):
            return _Judge(name, AnnotatorKind.DETECTOR)
        if name or self.criterion in _THUMBS:
            return _Judge(name or self.criterion, AnnotatorKind.PERSON)
        return _Judge("gold", AnnotatorKind.GOLD)

    @property
    def has_known_owner(self) -> bool:
        """Whether its name says no more than the criterion and who judged."""
        return all(map(_names_kind, self.owner))

    @cached_property
    def words(self) -> frozenset[str]:
        """Its different values."""
        return frozenset(map(plain_word, self.values))

    @property
    def is_scale(self) -> bool:
        """Whether its values are numbers of which some are neither 0 nor 1."""
        numbers = [_number(value) for value in self.values]
        if None in numbers or not numbers:
            return False
        is_share = self.criterion in _MEASURES and any("." in str(v) for v in self.values)
        return is_share or not self.words <= ({"1", "-1"} if "-1" in self.words else {"0", "1"})

    def meaning(self, value: object) -> bool | None:
        """Return whether a value means hallucinated; None for one that judges nothing.

        Raises:
            InputError: it is not known.
        """
        value = _only(value)
        if value is None or str(value).strip() == "":
            return None
        if self.rules:
            return any(rule.applies(value) for rule in self.rules)
        word = plain_word(value)
        if word in _FED_BACK and (self.criterion in _THUMBS or self.criterion == "rating"):
            return _FED_BACK[word]
        verdict = VERDICTS.get(word)
        if word in UNDECIDED or (self.is_one_thumb and word in NO - {"-1"}):
            return None
        if verdict in HALLUCINATED or verdict == "supported":
            return verdict != "supported"
        if self.polarity and (is_yes := yes_or_no(self.words | {word}).get(word)) is not None:
            return is_yes == (self.polarity == "bad")
        raise not_understood(self.name, [word])

    def said_in(self, cells: Mapping[str, Any]) -> Iterator[_Said]:
        """Yield what each of its judges says of a record; raises InputError as ``meaning``."""
        if self.is_by_name:
            for name, value in values_by_name(value_at(cells, self.name)).items():
                judge = _Judge(name, annotator_kind(name))
                yield _Said(f"feedback of {name!r}", judge, self.meaning(value))
        elif any(value_at(cells, name) not in (None, "") for name in self.names):
            named = " and ".join(map(repr, self.names))
            yield _Said(named, self.judge, self._meaning_in(cells))

    def _meaning_in(self, cells: Mapping[str, Any]) -> bool | None:
        """Return whether a record is called hallucinated; of votes for and against, by most.

        None where nothing is said, or as much for as against. Raises InputError as ``meaning``.
        """
        if not self.against:
            return self.meaning(value_at(cells, self.name))
        votes = []
        for name in self.names:
            votes.append(_votes(value := value_at(cells, name)))
            if votes[-1] is None:
                raise InputError(
                    "this is not a number of votes",
                    field=name,
                    found=value,
                    expected="a whole number, true or false; --hallucinated-if none reads no "
                    "verdicts",
                )
        good, bad = votes
        return None if good == bad else (bad or 0) > (good or 0)

    def knows(self, value: object) -> bool:
        """Say whether a value is a verdict, or judges nothing."""
        try:
            self.meaning(value)
        except InputError:
            return False
        return True


class _Said(NamedTuple):
    """What a judge says of an answer, and what a remark calls that."""

    called: str
    judge: _Judge
    hallucinated: bool | None


class _Counted(NamedTuple):
    column: VerdictColumn
    counts: Counter[bool | None]


def counts_in_words(counts: Mapping[bool | None, int]) -> str:
    """Return how often hallucinated was said, and not, and neither."""
    undecided = f", {counts[None]:,} undecided" if counts.get(None) else ""
    return f"{counts[True]:,} hallucinated, {counts[False]:,} not{undecided}"


def values_by_name(value: Any) -> Mapping[str, Any]:
    """Return the values of an object that are there, by their names; none of another value."""
    held = parse_object(value)
    values = held if isinstance(held, Mapping) else {}
    return {str(name).strip(): v for name, v in values.items() if not is_missing(v)}


@dataclass(frozen=True)
class VerdictColumns:
    """The columns of a file that judge whole answers; ``counts`` is how often each said what."""

    columns: tuple[VerdictColumn, ...] = ()
    remarks: tuple[str, ...] = ()
    counts: dict[str, _Counted] = field(default_factory=dict)

    def judged(
        self, cells: Mapping[str, Any], marked: Sequence[Annotation]
    ) -> tuple[Annotation, ...]:
        """Return annotations of a record with what its columns say of the whole answer.

        Raises:
            InputError: a value is not known.
        """
        by_name = {annotation.annotator: annotation for annotation in marked}
        for column in self.columns:
            for called, judge, said in column.said_in(cells):
                self.counts.setdefault(called, _Counted(column, Counter())).counts[said] += 1
                own = by_name.get(judge.annotator)
                if said is not None and own is None:
                    why = value_at(cells, column.note)
                    lines = map(str, why if isinstance(why, list) else filter(None, [why]))
                    by_name[judge.annotator] = Annotation(
                        **judge._asdict(), answer_hallucinated=said, note="\n".join(lines) or None
                    )
                elif own is not None and (said or (said is False and own.hallucinated)):
                    # Of an answer that is right, marks that are there and empty say as much.
                    by_name[own.annotator] = own.model_copy(update={"answer_hallucinated": said})
        return tuple(by_name.values())

    def __add__(self, others: VerdictColumns) -> VerdictColumns:
        """Return these columns with others behind them."""
        both = (*self.columns, *others.columns), (*self.remarks, *others.remarks)
        return VerdictColumns(*both)

    def told(self) -> Iterator[str]:
        """Yield what was read, with counts, and what was not."""
        for called, (column, counts) in self.counts.items():
            judges = "together judge" if column.against else "judges"
            no_thumb = _NO_THUMB if column.is_one_thumb and counts[None] else ""
            yield f"{called} {judges} whole answers: {counts_in_words(counts)}{no_thumb}"
        yield from self.remarks

    @property
    def read(self) -> Iterator[str]:
        """The names of the columns that have said something."""
        return (name for column, _ in self.counts.values() for name in column.names)


def verdict_columns(
    samples: Samples, taken: Mapping[str, str], rules: Rules | None
) -> VerdictColumns:
    """Return the columns that judge whole answers.

    Args:
        samples: some records.
        taken: columns that are read as something else, by our field. Classes of what is called a
            text are not refused: it may be no model's answer.
        rules: what people say of columns; none are read if that is nothing. None: nobody said so.

    Raises:
        InputError: some values of a column are verdicts and others are not, 0 and 1 could mean
            either, or a column that people name is not there.
    """
    names = dict.fromkeys(name for sample in samples for name in sample)
    if rules is not None:
        return _with_others(samples, taken, _ruled(samples, list(names), rules))
    free = [name for name in names if name not in taken.values()]
    counted: list[str] = []  # how many facts are right and wrong
    found = list(_of_opposites(samples, free, counted))
    remarks = [*_kept([repr(name) for name in counted])]
    unknown_kinds: list[VerdictColumn] = []  # called like verdicts, with no value that is known
    unbracketed = Counter(_IN_BRACKETS.sub("", name) for name in free)
    held = {n: [s[n] for s in samples if s.get(n) not in (None, "")] for n in free}
    for name in {name for column in found for name in column.names} | {*counted}:
        del held[name]
    for name, values in held.items():
        in_brackets = unbracketed[_IN_BRACKETS.sub("", name)] > 1
        column = verdicts_in(name, values, in_brackets=in_brackets)
        if column is None or not values:
            continue
        remark = unclear(column, may_refuse=taken.get("answer") != "text")
        remarks += [remark] if remark else []
        if not remark and not column.is_scale:
            (found if any(map(column.knows, column.values)) else unknown_kinds).append(column)
    # Beside somebody's column, one that has only the right ones of its words is another's.
    said = {w for column in found for w in column.words if w in VERDICTS and not column.criterion}
    taken_by = {column.name for column in (*found, *unknown_kinds)}
    for name in (name for name in held if name not in taken_by):
        column = VerdictColumn(name, "", (*words_of(name).split(),), values=(*held[name],))
        found += [column] if column.words and column.words <= said else []
    chosen = _chosen(found)
    for column in chosen:
        if unknown := [value for value in column.values if not column.knows(value)]:
            raise not_understood(column.name, unknown)
    if not chosen:
        found += _inside(samples, taken)
        found += [] if "spans" in taken else filter(_may_judge, unknown_kinds)
    remarks += _kept([repr(column.name) for column in found if column not in chosen])
    return VerdictColumns(tuple(chosen), tuple(remarks))


def _with_others(
    samples: Samples,
    taken: Mapping[str, str],
    ruled: Sequence[VerdictColumn],
) -> VerdictColumns:
    """Return columns that people name, with those of other judges that are clear by themselves."""
    if not ruled:
        return VerdictColumns()
    taken = {**taken, **{f"ruled {column.name}": column.name for column in ruled}}
    try:
        others = verdict_columns(samples, taken, None)
    except InputError as error:  # of a column that people have not asked for
        return VerdictColumns((*ruled,), _kept([repr(error.field)]))
    named = {column.judge.annotator for column in ruled}
    beside = [column for column in others.columns if column.judge.annotator not in named]
    left = [repr(column.name) for column in others.columns if column not in beside]
    return VerdictColumns((*ruled, *beside), (*others.remarks, *_kept(left)))


def _kept(names: Sequence[str]) -> tuple[str, ...]:
    return (may_judge(", ".join(names)),) if names else ()


def _may_judge(column: VerdictColumn) -> bool:
    """Say whether a column is called like a verdict and has few short values, as "x" for yes."""
    is_short = all(isinstance(value, str) and len(value) <= _SHORT for value in column.values)
    return bool(column.polarity) and is_short and len(column.words) <= _SHOWN


def _of_opposites(
    samples: Samples, names: Sequence[str], counted: list[str]
) -> Iterator[VerdictColumn]:
    """Yield what two columns say that count votes for and against answers, or have 1 for either.

    Those that count something else, such as facts, are added to ``counted``.
    """
    by_words = {_words_of_votes(name): name for name in reversed(names)}
    for name in names:
        words = _words_of_votes(name)
        for_it = next((word for word in words if word in _OPPOSITES), "")
        opposite = _OPPOSITES.get(for_it, "")
        against = by_words.get(tuple(opposite if word == for_it else word for word in words))
        if against is None or not for_it or words[-1] in _NOUNS:
            continue
        held = [[value_at(sample, each) for sample in samples] for each in (name, against)]
        values = [value for column in held for value in column if value not in (None, "")]
        if not values or any(_votes(value) is None for value in values):
            continue
        said = described(name, []) or described(against, [])
        criterion = said.criterion if said else "feedback"
        # What is called "correct" and "incorrect" may be answers, of which some are years.
        may_count = criterion in _THUMBS or not _COUNTING.isdisjoint(words)
        if not may_count and any((_votes(value) or 0) > 1 for value in values):
            counted += [name, against] if any(_votes(value) in (0, 1) for value in values) else []
            continue
        owner = [word for word in words if word not in (for_it, *_FILLERS, *_COUNTING, *_CRITERIA)]
        yield VerdictColumn(name, criterion, tuple(owner), against=against)


def _words_of_votes(name: str) -> tuple[str, ...]:
    words = words_of(name.replace("👍", " up ").replace("👎", " down "))
    return tuple(_NEGATED.sub(lambda found: _OPPOSITES.get(found[1], found[0]), words).split())


def _votes(value: object) -> int | None:
    """Return how many votes a value says, one for yes; None for one that is no such number."""
    word = plain_word("" if value is None else value)
    if word in YES or word in NO - {"-1"} or not word:
        return int(word in YES)
    return int(word) if word.isdecimal() else None


def verdicts_in(
    name: str, values: Sequence[Any], *, in_brackets: bool = False
) -> VerdictColumn | None:
    """Return a column as its objects, its name or its values say that it judges; None if not."""
    said = in_objects(name, values) or described(name, values, in_brackets=in_brackets)
    return said or _told_by_values(name, values)


def in_objects(name: str, values: Sequence[Any]) -> VerdictColumn | None:
    """Return what objects say of answers that a judge gives with its reasons; None if nothing.

    That is ``{"REASONING": [reason, …], "SCORE": "FAIL"}``, as Lynx answers, also as a text.
    """
    judged = [parse_object(value) for value in values]
    if not judged or not all(isinstance(said, Mapping) for said in judged):
        return None
    keys = dict.fromkeys(key for said in judged for key in said)
    notes = [key for key in keys if not _REMARKS.isdisjoint(words_of(key).split())]
    words = words_of(name).split()
    owner = [word for word in words if word not in (*_FILLERS, *_CRITERIA)]
    given = next((word for word in words if word in _CRITERIA), "")
    for key in keys if notes or given or any(map(_is_judge, owner)) else ():
        of_key = [said[key] for said in judged if said.get(key) not in (None, "")]
        column = described(key, of_key) or VerdictColumn(key, "verdict", values=tuple(of_key))
        is_told = notes or given or column.words <= VERDICTS.keys()
        if of_key and is_told and not column.is_scale and all(map(column.knows, of_key)):
            path, note = f"{name}.{key}", f"{name}.{next(iter(notes), '')}"
            owned = (*owner, *column.owner)
            criterion = given or column.criterion
            return replace(column, name=path, owner=owned, criterion=criterion, note=note)
    return None


def _told_by_values(name: str, values: Sequence[Any]) -> VerdictColumn | None:
    """Return a column whose values alone say that it judges, by whom its name says; None if not."""
    words = words_of(name).split()
    is_other = bool(words[-1:]) and words[-1] in _NOUNS
    if (
        is_other
        or not (_QUALITIES | _REMARKS).isdisjoint(words)
        or not all(isinstance(v, str) for v in values)
    ):
        return None
    owner = tuple(word for word in words if word not in _FILLERS)
    column = VerdictColumn(name, "", owner, values=tuple(values))
    return column if any(map(tells, values)) and all(map(column.knows, values)) else None


def _inside(samples: Samples, taken: Mapping[str, str]) -> Iterator[VerdictColumn]:
    """Yield what may judge answers inside objects, also in lists; people say whether it does."""
    samples = [{name: parse_object(value) for name, value in s.items()} for s in samples]
    used = tuple(f"{name}." for name in taken.values())
    for path in dict.fromkeys(path for sample in samples for path in paths(sample)):
        if "." not in path or f"{path}.".startswith(used) or any(path in s for s in samples):
            continue
        values = [v for s in samples for v in _flat(value_at(s, path)) if v not in (None, "")]
        column = (described(path, values) or _told_by_values(path, values)) if values else None
        if column is None or column.is_scale:
            continue
        if column.words <= YES | NO or all(map(column.knows, values)):
            yield column


def _flat(value: Any) -> Iterator[Any]:
    """Yield the elements of lists in each other, or a value that is none."""
    for part in value if isinstance(value, list) else ():
        yield from _flat(part)
    if not isinstance(value, list):
        yield value


def verdict_in(name: str, value: object) -> bool | None:
    """Return whether one response or score calls an answer hallucinated, by its name and value.

    None for one that says something else, such as a share or a judgement on another question.
    """
    column = None if value in (None, "") else described(name, [value])
    if column is None or column.is_scale or not column.has_known_owner or not column.knows(value):
        return None
    return column.meaning(value)


_OPTION: Final = "--hallucinated-if {}=VALUE says which values mean hallucinated"

_NO_THUMB: Final = f" (0 means no thumb given; {_OPTION.format('COLUMN')})"


def may_judge(shown: str, column: str = "COLUMN", what: str = "answers") -> str:
    """Return the remark on a column that is not read, for people who can say what it means."""
    return f"{shown} may judge {what}, and is kept in meta; {_OPTION.format(column)}"


def described(
    name: str, values: Sequence[Any], *, in_brackets: bool = False
) -> VerdictColumn | None:
    """Return a column as its name describes it; None if it says nothing of verdicts.

    "Correct? (Y/N)" says how it is judged, and not who does, unless ``in_brackets``.
    """
    values = [*map(_only, values)]
    words = words_of(name if in_brackets else _IN_BRACKETS.sub("", name)).split()
    criterion = next((word for word in _CRITERIA if word in words), None)
    if words[-1:] and words[-1] in _NOUNS and words[0] not in ("is", "has"):
        return None  # "correct answer" is one
    if any(isinstance(value, list | dict) for value in values) or not _REMARKS.isdisjoint(words):
        return None
    owner = [
        word
        for place, word in enumerate(words)
        if word not in _CRITERIA and (word not in _FILLERS or _is_letter(words, place))
    ]
    polarity: Polarity = "" if criterion in _NAMELESS else "good"
    if criterion in _BAD:
        polarity = "bad"
    if polarity and not {"not", "non", "down"}.isdisjoint(words):
        polarity = "good" if polarity == "bad" else "bad"
    if criterion is None:
        criterion, polarity = _NAMELESS[0], ""
        if len(owner) < len(words) or not any(map(_is_judge, owner)):
            return None
    is_one_thumb = criterion in _THUMBS and len({"up", "down"} & {*words}) == 1
    column = VerdictColumn(
        name, criterion, tuple(owner), polarity, tuple(values), is_one_thumb=is_one_thumb
    )
    is_thumb = criterion in ("feedback", "rating") and "-1" in column.words
    return replace(column, polarity="good") if is_thumb else column


def _only(value: object) -> object:
    """Return the one score of a list, as exports of traces have them (``["True"]``)."""
    if isinstance(value, str) and (match := _LIST_OF_ONE.fullmatch(value)):
        return match[2]
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def as_said_by(name: str, annotation: Annotation) -> Annotation:
    """Return gold labels as those of an annotator; raises ValidationError for no name."""
    about = {"annotator": name, "kind": annotator_kind(name)}
    return Annotation.model_validate({**dict(annotation), **about})


def annotator_kind(name: str) -> AnnotatorKind:
    """Return whether an annotator is gold, a person or a detector, by the words of the name."""
    if name == "gold":
        return AnnotatorKind.GOLD
    is_detector = any(map(_JUDGES.fullmatch, words_of(name).split()))
    return AnnotatorKind.DETECTOR if is_detector else AnnotatorKind.PERSON


def _is_letter(words: Sequence[str], place: int) -> bool:
    """Say whether a word is the letter of a judge ("annotator a", "label a") and no article."""
    before, after = words[max(place - 1, 0) : place], words[place + 1 : place + 2]
    is_apart = not after or after[0] in _NAMELESS or any(map(_is_judge, before))
    return words[place] == "a" and is_apart


def _names_kind(word: str) -> bool:
    """Say whether a word says which kind of judge, or which of several, and is no name."""
    return _is_judge(word) or _COUNTED.fullmatch(word) is not None


def _is_judge(word: str) -> bool:
    return word.rstrip("0123456789") in _PEOPLE or _JUDGES.fullmatch(word) is not None


def unclear(column: VerdictColumn, *, may_refuse: bool) -> str:
    """Return why a column is not read, for people who can say what it means; "" if it is clear.

    Raises:
        InputError: it has 0 and 1, and its name does not say which is which.
    """
    if not (column.criterion and column.has_known_owner):
        return ""
    is_named = column.criterion in words_of(column.name).split()
    shown = named_values(column.values)
    if column.is_scale and is_named and column.criterion not in ("label", "verdict"):
        sign = ">" if column.polarity == "bad" else "<"
        return (
            f"{column.name!r} has numbers ({shown}) and is kept in meta; "
            f"--hallucinated-if '{column.name}{sign}NUMBER' makes verdicts of them"
        )
    if column.polarity or not column.words <= YES | NO:
        return ""
    if is_named and may_refuse and column.words <= {"0", "1"}:
        raise InputError(
            "0 and 1 may mean either",
            field=column.name,
            found=shown,
            expected="a name such as hallucinated or correct; "
            f"--hallucinated-if {column.name}=1 says which of them means hallucinated, "
            "--hallucinated-if none that it judges nothing",
        )
    return may_judge(f"{column.name!r} ({shown})")


def _chosen(found: Sequence[VerdictColumn]) -> list[VerdictColumn]:
    """Return the columns of one criterion: one, or those of several judges."""
    groups: dict[str, list[VerdictColumn]] = {}
    order = (*_CRITERIA, "")  # what only the values say goes last
    for column in sorted(found, key=lambda column: order.index(column.criterion)):
        group = _NAMELESS[0] if column.criterion in _NAMELESS else column.criterion
        groups.setdefault(group, []).append(column)
    for criterion, of_one in groups.items():
        values = [value for one in of_one for value in one.values]
        columns = of_one if criterion or are_verdicts(values) else []
        columns = [one for one in columns if (_ASPECTS | _QUALITIES).isdisjoint(one.owner)]
        chosen = columns if len(columns) > 1 else [one for one in columns if one.has_known_owner]
        if chosen:
            by_judge = {column.judge.annotator: column for column in reversed(chosen)}
            return [column for column in chosen if column in by_judge.values()]
    return []


def _ruled(samples: Samples, names: Sequence[str], rules: Rules) -> list[VerdictColumn]:
    """Return the columns that people name, each of a judge of its own.

    Raises:
        InputError: one is not there.
    """
    columns = []
    for name, of_it in rules.items():
        if all(value_at(sample, name) is None for sample in samples):
            raise InputError(
                f"there is no column {name!r} for --hallucinated-if",
                found=f"the columns {', '.join(map(repr, names))}",
                expected="one of these columns",
            )
        said = described(name.rpartition(".")[2], [])
        is_known = said is not None and (said.has_known_owner or len(rules) > 1)
        owner = said.owner if said is not None and is_known else ()
        criterion = said.criterion if said else ""
        columns.append(VerdictColumn(name, criterion, owner, rules=tuple(of_it)))
    judges = Counter(column.judge.annotator for column in columns)
    named = {
        c.name: _judge_named(c)
        for c in columns
        if judges[c.judge.annotator] > 1 or (_is_score(c) and c.judge.kind is AnnotatorKind.GOLD)
    }
    labels = [name for name, judge in named.items() if judge.kind is AnnotatorKind.GOLD]
    if len(labels) == 1:
        del named[labels[0]]  # which are the gold labels
    return [replace(column, known_judge=named.get(column.name)) for column in columns]


def _judge_named(column: VerdictColumn) -> _Judge:
    """Return the judge of one of several columns, called like it: a metric is a detector."""
    name = words_of(column.name) or column.name
    if _is_score(column):
        return _Judge(name, AnnotatorKind.DETECTOR)
    names_nobody = column.criterion and not column.owner
    return _Judge(name, AnnotatorKind.GOLD if names_nobody else annotator_kind(name))


def _is_score(column: VerdictColumn) -> bool:
    """Say whether a column that people name has what a program has measured, by a threshold."""
    return column.criterion in _MEASURES or any(rule.sign != "=" for rule in column.rules)


def not_understood(column: str, values: Sequence[object]) -> InputError:
    """Return the error of a column of which some values are verdicts, and these are not."""
    return InputError(
        "not all values of this column are known as verdicts",
        field=column,
        found=named_values(values),
        expected="verdicts such as hallucinated, faithful, yes or no; "
        f"--hallucinated-if {column}=VALUE says which values mean hallucinated, all others being "
        "right; --hallucinated-if none reads no verdicts",
    )


def named_values(values: Sequence[object]) -> str:
    """Return the different values of many, the first of them, with commas between."""
    different = list(dict.fromkeys(map(str, values)))
    return ", ".join(different[:_SHOWN]) + (", …" if len(different) > _SHOWN else "")


def _number(value: object) -> float | None:
    """Return a value as a number, stars by how many are full; None for another one."""
    if _STARS.fullmatch(text := str(value).replace("\ufe0f", "")):
        return float(len(text.replace("☆", "")))
    try:
        return None if isinstance(value, bool) else float(str(value))
    except ValueError:
        return None
