"""Multi-hop questions with passages: HotpotQA, 2WikiMultihopQA, MuSiQue, and SAFE's own lines.

HotpotQA, 2Wiki  {"_id", "question", "answer", "context": [[title, [sentence, …]], …],
                      "supporting_facts": [[title, number], …]}
    MuSiQue          {"id", "question", "answer", "paragraphs": [{"title", "paragraph_text",
                      "is_supporting"}, …], "question_decomposition": […]}
    SAFE             {"id", "question", "answers", "retrieved_passages": ["title: text", …],
                      "passage_titles": [title, …]}

Without ``passage_titles`` a title ends at the first colon, or is one of ``gold_titles``.

They are questions to answer (`spanlab reason`): the item's answer is empty, and the right ones are
``answers`` in its ``meta``, with all that the file says beside. There are ten passages a question,
as in Kwon et al. 2026, appendix A.4: those that support the answer and others, shuffled the same
way every time.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from spanlab.base.errors import InputError
from spanlab.formats.files import FileRow
from spanlab.formats.guess import guess
from spanlab.formats.reader import FormatEntry, FormatReader, checked
from spanlab.schema import Item, Passage, Record

PASSAGES: Final = 10
SEED: Final = 2026


class _Paragraph(BaseModel):
    model_config = ConfigDict(frozen=True)

    title: str
    paragraph_text: str
    is_supporting: bool = False


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _as_rows(value: object) -> object:
    """Return the columns that Hugging Face's ``datasets`` makes of a list as its rows."""
    return list(zip(*value.values(), strict=True)) if isinstance(value, dict) else value


_AS_ROWS: Final = BeforeValidator(_as_rows)


class _QuestionLine(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow")

    question: str = Field(min_length=1)
    id: str | None = Field(default=None, coerce_numbers_to_str=True)
    hotpot_id: str | None = Field(default=None, alias="_id")
    answers: Annotated[tuple[str, ...], BeforeValidator(_as_list)] = ()
    answer: str | None = None
    answer_aliases: tuple[str, ...] = ()
    context: Annotated[tuple[tuple[str, tuple[str, ...]], ...], _AS_ROWS] = ()
    supporting_facts: Annotated[tuple[tuple[str, int], ...] | None, _AS_ROWS] = None
    paragraphs: tuple[_Paragraph, ...] = ()
    retrieved_passages: tuple[str, ...] = ()
    passage_titles: tuple[str | None, ...] = ()
    gold_titles: tuple[str, ...] = ()


class MultihopReader(FormatReader):
    """Reads multi-hop questions."""

    signatures = (
        frozenset(("question", "context", "supporting_facts")),
        frozenset(("question", "paragraphs", "question_decomposition")),
        frozenset(("question", "paragraphs", "answerable")),
        frozenset(("question", "retrieved_passages")),
    )
    before = frozenset(("spanlab",))  # MuSiQue's questions have an id and an answer
    in_parquet = True

    @classmethod
    def recognises(cls, record: Mapping[str, object]) -> bool:
        """Say whether a record is a question that no model has answered yet."""
        beside = [name for name in record if name not in _QuestionLine.model_fields]
        is_answered = "answer" in guess(beside)
        return super().recognises(record) and not is_answered

    def _record(self, row: FileRow) -> Record:
        line = _QuestionLine.model_validate_json(row.raw)
        name = line.id or line.hotpot_id or f"question-{row.line}"
        gold = {*line.gold_titles, *(title for title, _ in line.supporting_facts or ())}
        passages = choose_ten(_passages(line, gold), gold, name)
        answers = [*line.answers, *([line.answer] if line.answer else []), *line.answer_aliases]
        extra: dict[str, Any] = {
            "answers": list(dict.fromkeys(answers)),
            **(line.model_extra or {}),
        }
        if line.supporting_facts is not None:
            extra["supporting_facts"] = [list(fact) for fact in line.supporting_facts]
        supporting = gold | {
            paragraph.title for paragraph in line.paragraphs if paragraph.is_supporting
        }
        extra["gold_titles"] = sorted(supporting)
        meta: dict[str, JsonValue] = extra
        item = Item(
            id=name, lang="en", question=line.question, answer="", passages=passages, meta=meta
        )
        return Record(item=checked(item))


def _passages(line: _QuestionLine, gold: set[str]) -> list[tuple[Passage, bool]]:
    """Return the passages of a line, and of each whether the line itself says it supports."""
    passages = [
        (Passage(title=title, text="".join(_add_spaces(sentences))), False)
        for title, sentences in line.context
    ]
    passages += [
        (Passage(title=paragraph.title, text=paragraph.paragraph_text), paragraph.is_supporting)
        for paragraph in line.paragraphs
    ]
    return passages + [(passage, False) for passage in _read_retrieved(line, gold)]


def _read_retrieved(line: _QuestionLine, gold: set[str]) -> list[Passage]:
    """Return SAFE's passages; titles have colons of their own ("Alien: Covenant").

    Raises:
        InputError: there are more or fewer titles than passages.
    """
    texts, titles = line.retrieved_passages, line.passage_titles
    if titles and texts and len(titles) != len(texts):
        raise InputError(
            "not every passage has its title",
            field="passage_titles",
            found=len(titles),
            expected=f"one for each of the {len(texts)} in `retrieved_passages`",
        )
    names = titles or [_title(text, gold) for text in texts]
    return [_passage(title or None, text) for title, text in zip(names, texts, strict=False)]


def _title(text: str, titles: set[str]) -> str | None:
    """Return the title that a passage begins with: the longest known one, or up to a colon."""
    named = [title for title in titles if text.startswith(f"{title}: ")]
    title, colon, _ = text.partition(": ")
    return max(named, key=len) if named else title if colon else None


def _passage(title: str | None, text: str) -> Passage:
    body = text.removeprefix(f"{title}: ") if title else text
    return Passage(title=title, text=body or text)


def _add_spaces(sentences: Sequence[str]) -> list[str]:
    """Return sentences with a space between those that have none (2WikiMultihopQA's)."""
    return [
        f" {sentence}"
        if at and sentence[:1].strip() and not sentences[at - 1][-1:].isspace()
        else sentence
        for at, sentence in enumerate(sentences)
    ]


def choose_ten(
    passages: Sequence[tuple[Passage, bool]], gold: set[str], name: str
) -> tuple[Passage, ...]:
    """Return at most ten passages in an order that depends on the question's name alone.

    Args:
        passages: passages, and of each whether it supports the answer.
        gold: titles of further passages that do.
        name: the question's id.
    """
    dice = random.Random(f"{SEED}:{name}")
    shuffled = list(passages)
    dice.shuffle(shuffled)
    # Supporting ones first.
    shuffled.sort(key=lambda paragraph: not (paragraph[1] or paragraph[0].title in gold))
    drawn = [passage for passage, _ in shuffled[:PASSAGES]]
    dice.shuffle(drawn)
    return tuple(drawn)


FORMAT = FormatEntry(
    name="multihop",
    title="Questions of HotpotQA, 2WikiMultihopQA or MuSiQue",
    reader=MultihopReader,
    order=110,
)
