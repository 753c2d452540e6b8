"""The runs of a trace: which of its spans made which answer.

A trace holds several runs where questions are answered side by side or one after the other: in a
loop, by ``asyncio.gather``, in the turns of a chat. A part that may be a run is a span that was
given a question and gave an answer that a model in it said; outside of these, a model's call. Parts
are steps of one run if they were asked the same, or if one was given what the other said. What a
chat says before its last question was said by earlier turns, and is no such gift. Calls that
sum up, title or carry on a chat are asides of the turn that they retell, in whatever language.

A span around several runs is none's, but what it says of session and user, each of them has. A span
beside runs, such as a retriever, is of those that were asked the same or read what it found, else
of the one that is alone under way.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from spanlab.formats.prompt_labels import last_round
from spanlab.traces import spans as told
from spanlab.traces.prompts import core_of
from spanlab.traces.quoting import LEAST, START, Texts
from spanlab.traces.span_files import joined
from spanlab.traces.spans import Span
from spanlab.traces.trace import ABOUT, RESULTS, Trace

_Name = Any  # the id of a span
_SEVERAL: Final = object()  # runs in a span
_DIGITS: Final = re.compile(r"\d+")


class Run(NamedTuple):
    """The spans that made an answer; its number counts from 1, and is 0 for a whole trace."""

    number: int
    spans: Sequence[Span]


def runs_of(spans: Sequence[Span]) -> list[Run]:
    """Return the runs of a trace in the order in which they began.

    Args:
        spans: all that came of a trace, in any order, and its messages from logs.

    Returns:
        The whole trace if there is one run in it, or none.
    """
    spans = joined(spans)
    trace = Trace(spans)
    parts = _parts(trace)
    links = _Links(trace, parts)
    runs = _repeated(trace, parts, links)
    if sum(any(parts[name].answers for name in names) for names in runs.values()) < 2:
        return [Run(0, spans)]
    ends = {text.strip(): at for said, at in trace.said.items() for text in _said_in([said])}
    kept: dict[_Name, list[Span]] = {run: [] for run in runs}
    about: dict[str, Any] = {}
    owners = _owners(trace, parts, links, runs)
    for span in trace.order:
        if not owners[span["id"]]:
            about |= {n: v for n, v in span["attributes"].items() if n in _ABOUT}
        for run in owners[span["id"]] & kept.keys():
            own = {n: v for n, v in span["attributes"].items() if n not in _OF_TRACE}
            marks: dict[str, Any] = {"is_shared": True} if len(owners[span["id"]]) > 1 else {}
            marks |= {"kind": "aside"} if span["id"] in links.asides else {}
            if trace.kind(span) in ("retriever", "tool"):
                found = told.documents_of(span)
                marks["said"] = [t for t in found if ends.get(t.strip(), math.inf) < span["end"]]
            kept[run].append({**span, **marks, "attributes": {**about, **own}})
    return [Run(number, kept[run]) for number, run in enumerate(runs, start=1)]


class _Part(NamedTuple):
    """A span that may be a run, or a step of one."""

    span: Span
    question: str
    answers: Sequence[str]  # none of a call that failed
    is_whole: bool  # whether it is more than a call: it has question and answer, or an agent's


def _parts(trace: Trace) -> dict[_Name, _Part]:
    """Return the outermost parts, and those that begin anew inside one.

    Some instrumentations have each run of a batch inside the one before: by the same name, with
    another question.
    """
    parts, around = dict[_Name, _Part](), dict[_Name, _Part | None]()
    said = trace.said_inside()
    for span in trace.order:
        outer, part = around.get(span.get("parent")), _part(trace, span, said)
        if part and outer:
            is_new = part.is_whole and span["name"] == outer.span["name"]
            part = part if is_new and not _are_alike(part.question, outer.question) else None
        around[span["id"]] = part or outer
        if part:
            parts[span["id"]] = part
    return parts


def _part(trace: Trace, span: Span, said: Mapping[_Name, Sequence[str]]) -> _Part | None:
    if trace.kind(span) == "model":
        asked, has_failed = trace.asked_in(span), bool(span.get("failed"))
        if span["id"] in said or (has_failed and asked):
            replies = [message.text for message in trace.messages(span, read=False)]
            return _Part(span, asked, [] if has_failed else replies, is_whole=False)
    elif trace.kind(span) in ("", "agent") and (inner := said.get(span["id"])):
        answer, question = told.said_by(span), told.asked_of(span)
        if answer and question and any(answer in text or text in answer for text in inner):
            return _Part(span, question, [answer], is_whole=True)
        questions = [trace.asked_in(call) for call in trace.agents.get(span["id"], ())]
        if questions and all(_are_alike(questions[0], other) for other in questions):
            return _Part(span, questions[0], inner[-1:], is_whole=True)
    return None


def _are_alike(one: str, other: str) -> bool:
    short, long = sorted((core_of(one), core_of(other)), key=len)
    return short == long or (len(short) >= START and short in long)


def _goes_on(one: str, other: str) -> bool:
    """Say whether a question begins with another, and asks more behind it on the same line."""
    short, long = sorted((core_of(one), core_of(other)), key=len)
    return long.startswith(short) and long[len(short) :].partition("\n")[0].strip() != ""


class _Links:
    """Which parts are steps of one run: sets that grow together."""

    def __init__(self, trace: Trace, parts: Mapping[_Name, _Part]) -> None:
        self._trace, self._parts = trace, parts
        self._first = {name: name for name in parts}
        self._asked, self._said, self._found = Texts(), Texts(), Texts()
        self.readers: dict[_Name, set[_Name]] = {}  # span beside runs → parts that it belongs to
        self._inside: dict[_Name, _Name] = {}  # span → the part that it is in
        self._puts: dict[str, bool] = {}  # question → whether no model had said it
        self._told: dict[str, tuple[set[_Name], set[_Name]]] = {}  # text → who said, asked it
        for span in trace.order:
            inner = span["id"] if span["id"] in parts else self._inside.get(span.get("parent"))
            if inner is not None:
                self._inside[span["id"]] = inner
        for name, part in parts.items():
            self._asked.add(core_of(part.question), name)
            for text in _said_in(part.answers):
                self._said.add(text, name)
        beside = [span for span in trace.order if span["id"] not in self._inside]
        self._gifts: dict[str, dict[_Name, list[Span]]] = {}  # text → who said it → who read it
        for span in beside:
            self._join_beside(span)
        for span in trace.order:
            if span["id"] in self._inside:
                self._join_given(span, self._inside[span["id"]])
        self.asides = self._join_asides()
        for name in parts:
            self._join_asked(name)
        for readers in self._gifts.values():
            self._join_readers(readers)
        self._join_around(beside)

    def of(self, part: _Name) -> _Name:
        """Return the part that is the name of a part's run."""
        while self._first[part] != part:
            self._first[part] = part = self._first[self._first[part]]
        return part

    def _join(self, one: _Name, other: _Name) -> None:
        self._first[self.of(other)] = self.of(one)

    def _join_beside(self, span: Span) -> None:
        """Find whose a span beside runs is, by what it was asked, and what it found."""
        is_model = self._trace.kind(span) == "model"
        messages = self._trace.messages(span, read=False) if is_model else ()
        for text in (*told.documents_of(span), *(message.text for message in messages)):
            self._found.add(text, span["id"])
        self.readers[span["id"]] = self._asked.owners(core_of(told.asked_of(span)), START)
        if (judged := self._inside.get(self._trace.judged.get(span["id"]))) is not None:
            self.readers[span["id"]] = {judged}

    def _closeness(self, name: _Name, span: Span) -> tuple[int, int]:
        """Return how many spans are around both, and minus the time between them."""
        part = self._parts[name].span
        return _n_common(self._trace, part, span), -abs(part["end"] - span["start"])

    def _join_asked(self, name: _Name) -> None:
        """Join a part with those that were asked the same."""
        part = self._parts[name]
        for other in self._asked.owners(core_of(part.question), START):
            is_aside = not self.asides.keys().isdisjoint((name, other))
            if not is_aside and not self._are_repeated(part, self._parts[other]):
                self._join(name, other)

    def _are_repeated(self, one: _Part, other: _Part) -> bool:
        """Say whether two parts are runs of one function, or in spans that are, or turns."""
        if one.is_whole or other.is_whole:
            have_one_name = one.span["name"] == other.span["name"]
            return one.is_whole and other.is_whole and have_one_name
        earlier, later = sorted((one, other), key=lambda part: part.span["start"])
        news = self._trace.news(later.span)
        turns = self._trace.messages(later.span, read=True)
        if _goes_on(one.question, other.question) or any(
            turn.text in earlier.answers and turn not in news for turn in turns
        ):
            return True
        if any(message.role in RESULTS for message in news):
            return False  # an agent's next step
        paths = self._trace.path(one.span), self._trace.path(other.span)
        apart = _n_common(self._trace, one.span, other.span)
        first, second = (path[apart : apart + 2] for path in paths)
        return len(first) == len(second) == 2 and _bare_name(first[0]) == _bare_name(second[0])

    def _join_given(self, span: Span, reader: _Name) -> None:
        """Note what parts had said that a span was given, which is in another part."""
        news = self._trace.news(span)
        for message in news:
            asks, text = message.role in told.USERS or len(news) == 1, last_round(message.text)
            for found in self._found.owners(text):
                self.readers[found].add(reader)
            for said, givers in self._said.inside(text).items():
                for giver in givers:
                    is_turn = not asks and self._is_turn(self._parts[giver], text)
                    if not is_turn and self._parts[giver].span["end"] <= span["start"]:
                        self._gifts.setdefault(said, {}).setdefault(giver, []).append(span)

    def _is_turn(self, part: _Part, text: str) -> bool:
        """Say whether instructions quote a part's question, which no model had put, beside it."""
        return core_of(part.question) in text and self._is_put(part)

    def _is_put(self, part: _Part) -> bool:
        """Say whether no model had said a part's question."""
        if part.question not in self._puts:
            question = core_of(part.question)
            self._puts[part.question] = not any(question in said for said in self._trace.said)
        return self._puts[part.question]

    def _join_asides(self) -> Mapping[_Name, _Name]:
        """Join calls that sum up, title or carry on a chat with the last turn that they retell.

        They are known by what comes later: a turn reads what they say in place of the turn that
        they retell, or has that in its chat and nothing of theirs. Calls of their form are the
        same. What they say makes no run of two turns.
        """
        chats: dict[str, set[_Name]] = {}  # what was said before a question → who was asked that
        for call in self._trace.calls:
            for message in self._trace.told_to(call)[:-1]:
                if message.role not in told.USERS:
                    chats.setdefault(message.text.strip(), set()).add(self._inside.get(call["id"]))
        retold = dict[_Name, list[_Name]]()
        alike: dict[tuple[str, ...], list[_Name]] = {}
        for name, part in self._parts.items():
            if not part.is_whole and (turns := self._retold(part)):
                retold[name] = turns
                alike.setdefault(self._form(part, self._parts[turns[-1]]), []).append(name)
        asides = dict[_Name, _Name]()
        for names in alike.values():
            said = {text.strip() for name in names for text in self._parts[name].answers}
            is_apart = said.isdisjoint(chats)
            is_usual = len({retold[name][-1] for name in names}) > 1
            for name in names:
                answers = [a.strip() for turn in retold[name] for a in self._parts[turn].answers]
                asked = self._trace.told_to(self._parts[name].span)[-1].text
                is_passed = is_apart and (is_usual or any(text in asked for text in answers))
                is_passed &= any(not chats.get(text, set()).issubset(names) for text in answers)
                if self._is_memory(name, names, retold, is_passed=is_passed):
                    asides |= {aside: retold[aside][-1] for aside in names}
                    break
        for name, turn in asides.items():
            self._join(turn, name)
        return asides

    def _retold(self, part: _Part) -> list[_Name]:
        """Return the turns of which a call has read question and answer, as these ended."""
        said, asked = set[_Name](), set[_Name]()
        for message in self._trace.told_to(part.span):
            if message.text not in self._told:
                owners = self._said.owners(message.text), self._asked.owners(message.text, START)
                self._told[message.text] = owners
            said |= self._told[message.text][0]
            asked |= self._told[message.text][1]
        turns = [name for name in said & asked if self._is_put(self._parts[name])]
        turns = [name for name in turns if self._parts[name].span["end"] <= part.span["start"]]
        return sorted(turns, key=lambda name: (self._parts[name].span["end"], str(name)))

    def _form(self, part: _Part, turn: _Part) -> tuple[str, str, str]:
        """Return what is alike in calls of one kind: name, and how instructions and task begin."""
        *before, asked = (message.text for message in self._trace.told_to(part.span))
        quoted = [asked.find(text) for text in (core_of(turn.question), *turn.answers)]
        end = min((at for at in quoted if at > 0), default=LEAST)
        return str(part.span["name"]), "".join(before[:1])[:LEAST], asked[: min(end, LEAST)]

    def _is_memory(
        self,
        name: _Name,
        names: Sequence[_Name],
        retold: Mapping[_Name, Sequence[_Name]],
        *,
        is_passed: bool,
    ) -> bool:
        """Say whether a question that no model put is asked with what a call says of turns.

        Without it, one that later turns pass by (``is_passed``) is no memory, but as much aside;
        unless what it says is what is asked.
        """
        readers = [reader for reader in self._readers_of(name) if reader not in names]
        questions = {reader: core_of(self._parts[reader].question) for reader in readers}
        if not set(questions.values()).isdisjoint(map(str.strip, self._parts[name].answers)):
            return False
        told_of = [self._parts[turn].question for turn in (name, *retold[name])]
        apart = set(readers).difference(self._readers_of(retold[name][-1]))
        return is_passed or any(
            name not in retold.get(reader, ())
            and not any(text in asked or asked in text for text in self._trace.said)
            and not any(_are_alike(asked, question) for question in told_of)
            for reader, asked in questions.items()
            if reader in apart
        )

    def _readers_of(self, name: _Name) -> set[_Name]:
        """Return the parts that were given what one said, but as turns of a chat."""
        gifts = (self._gifts.get(said, {}) for said in _said_in(self._parts[name].answers))
        return {self._inside[span["id"]] for read_by in gifts for span in read_by.get(name, ())}

    def _join_readers(self, read_by: Mapping[_Name, Sequence[Span]]) -> None:
        """Join those that said a text with all who read it, each with the closest if several did.

        What several runs say, such as "I do not know", makes no run of them.
        """
        for name, read in read_by.items():
            spans = [span for span in read if self._inside[span["id"]] not in self.asides]
            if name in self.asides or not spans:
                continue
            closest = [max(spans, key=lambda span: self._closeness(name, span))]
            for span in spans if len(read_by) == 1 else closest:
                self._join(self._inside[span["id"]], name)

    def _join_around(self, beside: Iterable[Span]) -> None:
        """Join all parts in a span that has the question of one, or the answer of a model's call.

        It is an agent that tries again, or a run of which one end is not told.
        """
        inside = dict[_Name, list[_Name]]()
        for name in self._parts:
            for span in self._trace.path(self._parts[name].span)[:-1]:
                inside.setdefault(span["id"], []).append(name)
        for span in beside:
            names = inside.get(span["id"], [])
            asked, said = told.asked_of(span), told.said_by(span)
            parts = [self._parts[name] for name in names]
            is_run = asked and any(_are_alike(asked, part.question) for part in parts)
            is_run = is_run or any(said in p.answers and not p.is_whole for p in parts)
            for name in names if is_run else ():
                self._join(names[0], name)


def _said_in(answers: Iterable[str]) -> Iterator[str]:
    """Yield answers, and the texts in those that are JSON, such as facts to remember."""
    for answer in answers:
        yield answer
        if isinstance(value := told.parse_json(answer), dict | list):
            yield from (text for text in told.strings_in(value) if len(text.encode()) >= LEAST)


def _bare_name(span: Span) -> str:
    """Return a span's name without the numbers by which programs count runs."""
    return _DIGITS.sub("", str(span["name"]))


def _n_common(trace: Trace, one: Span, other: Span) -> int:
    """Return how many spans are around both."""
    pairs = zip(trace.path(one), trace.path(other), strict=False)
    return sum(outer["id"] == around["id"] for outer, around in pairs)


def _repeated(
    trace: Trace, parts: Mapping[_Name, _Part], links: _Links
) -> dict[_Name, list[_Name]]:
    """Return the parts of each run, as the runs began.

    In a span that has an input or output, a program's steps may be apart without a word of one in
    the other: so runs are what it does several times.
    """
    runs: dict[_Name, list[_Name]] = {}
    for name in sorted(parts, key=lambda name: parts[name].span["start"]):
        runs.setdefault(links.of(name), []).append(name)
    holding = _holding(trace, parts, links)
    outer = [span for span in trace.order if holding.get(span["id"]) is _SEVERAL]
    if all(told.input_of(s) is None and told.output_of(s) is None for s in outer):
        return runs
    first = {holding[s["id"]]: s for s in reversed(trace.order) if s["id"] in holding}
    named = {run: _bare_name(first[run]) for run in runs}
    often = Counter(named.values())
    return {run: names for run, names in runs.items() if often[named[run]] > 1}


def _holding(trace: Trace, parts: Mapping[_Name, _Part], links: _Links) -> dict[_Name, Any]:
    """Return the run that a span is or has in it, ``_SEVERAL`` for more than one."""
    holding: dict[_Name, Any] = {}
    for span in reversed(trace.order):
        own = links.of(span["id"]) if span["id"] in parts else holding.get(span["id"])
        if own is not None:
            holding[span["id"]] = own
            around = holding.setdefault(span.get("parent"), own)
            if around is not own and around != own:
                holding[span.get("parent")] = _SEVERAL
    return holding


def _owners(
    trace: Trace, parts: Mapping[_Name, _Part], links: _Links, runs: Mapping[_Name, Sequence[_Name]]
) -> dict[_Name, set[_Name]]:
    """Return the runs that each span belongs to; none of one around several."""
    holding = _holding(trace, parts, links)
    extents = [_extent(parts[name].span for name in names) for names in runs.values()]
    starts, ends = sorted(start for start, _ in extents), sorted(end for _, end in extents)
    by_end = dict(zip((end for _, end in extents), runs, strict=True))
    owners: dict[_Name, set[_Name]] = {}
    for span in trace.order:
        name, run = span["id"], holding.get(span["id"])
        outer = owners.get(span.get("parent"), set())
        if run is not None:
            owners[name] = set() if run is _SEVERAL else {run}
        elif outer:
            owners[name] = outer
        elif whose := links.readers.get(name):
            owners[name] = {links.of(part) for part in whose}
        else:
            at = bisect_right(ends, span["start"])
            is_alone = at < len(ends) and bisect_left(starts, ends[at]) - at == 1
            owners[name] = {by_end[ends[at]]} if is_alone else set()
    return owners


def _extent(spans: Iterable[Span]) -> tuple[int, int]:
    times = [(span["start"], span["end"]) for span in spans]
    return min(start for start, _ in times), max(end for _, end in times)


_ABOUT: Final = frozenset(name for meaning in ABOUT for name in told.NAMES[meaning])
_OF_TRACE: Final = frozenset((*told.NAMES["run"], *told.NAMES["result"], *told.NAMES["preview"]))
