"""What a span model was trained to read and write: its contract, from a file or a package."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from string import Template
from types import ModuleType
from typing import Final

from pydantic import Field, JsonValue, ValidationError

from spanlab.base.errors import InputError, UsageError, unreadable
from spanlab.base.fields import FrozenModel, message_of
from spanlab.formats.files import check_file
from spanlab.schema import Item
from spanlab.systems.span_model import LETTUCEDETECT

_ENGLISH: Final = "en"


class SpanContract(FrozenModel):
    """A prompt, and the form of a reply.

    In ``system`` and ``user`` stand ``{question}``, ``{passages}`` and ``{answer}`` for what an
    item has, and ``{count}`` for the number of passages. ``schema`` is sent as a
    JSON schema to endpoints that take one. The reply is an object with a list ``spans`` of objects,
    or of texts: ``text`` is the quote, ``label`` its kind, ``note`` why it is marked; ``labels``
    says what kinds are called here. ``passage`` stands before each passage, with ``{number}``.
    """

    system: str = ""
    user: str
    reply_schema: dict[str, JsonValue] | None = None
    spans: str = "hallucinated_spans"
    text: str = "text"
    label: str = "category"
    note: str = "explanation"
    labels: dict[str, str] = Field(default_factory=dict)
    passage: str = "passage {number}: "

    def messages(self, item: Item, passages: Sequence[str]) -> list[dict[str, str]]:
        """Return the call's messages for an item and the passages that are read."""
        shown = "\n".join(
            self.passage.replace("{number}", str(number)) + text
            for number, text in enumerate(passages, 1)
        )
        values = {"question": item.question, "passages": shown, "answer": item.answer}
        values["count"] = str(len(passages))
        # In one go: an answer may hold what looks like a place.
        texts = {
            role: _PLACE.sub(lambda place: values[place[1]], template)
            for role, template in (("system", self.system), ("user", self.user))
        }
        return [{"role": role, "content": text} for role, text in texts.items() if text]


_PLACE: Final = re.compile(r"\{(question|passages|answer|count)\}")


def read_contract(name: str, item: Item, *, explain: bool = False) -> SpanContract:
    """Return the contract of a span model for an item.

    Args:
        name: a JSON or TOML file with the fields of ``SpanContract``, or "lettucedetect".
        item: whose language and question decide which words a package has for it.
        explain: whether each span comes with an explanation, where a package offers that.

    Raises:
        InputError: the file cannot be read, or a field of it is wrong.
        UsageError: the package is not installed, or has none of what is needed.
    """
    return _from_lettucedetect(item, explain) if name == LETTUCEDETECT else _from_file(Path(name))


def _from_file(path: Path) -> SpanContract:
    check_file(path)
    try:
        text = path.read_text("utf-8")
        fields = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except OSError as error:
        raise unreadable(path, error) from None
    except ValueError as error:
        raise InputError(f"is not valid {path.suffix[1:] or 'JSON'}: {error}", file=path) from None
    try:
        return SpanContract.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise InputError(message_of(first), file=path, field=where) from None


def _from_lettucedetect(item: Item, explain: bool) -> SpanContract:
    """Return what LettuceDetect's trained generative models read, from their installed package.

    Only its file of prompts is run: the package itself loads PyTorch.
    """
    folder, prompts = _prompts_of_package()
    system = prompts.build_system_prompt(explain=explain)
    name = "qa_prompt" if item.question.strip() else "summary_prompt"
    path = folder / f"{name}_{item.lang}.txt"
    path = path if path.exists() else folder / f"{name}_{_ENGLISH}.txt"
    asked = Template(path.read_text("utf-8")).safe_substitute(
        question="{question}", context="{passages}", text="{passages}", num_passages="{count}"
    )
    fields = {"text": None, "category": prompts.CATEGORY_DESCRIPTIONS}
    fields |= {"subcategory": prompts.SUBCATEGORY_DESCRIPTIONS}
    fields |= {"explanation": None} if explain else {}
    return SpanContract(
        system=system,
        user=prompts.build_user_message(asked, "{answer}"),
        reply_schema=_schema("hallucinated_spans", fields),
    )


def _prompts_of_package() -> tuple[Path, ModuleType]:
    found = find_spec(LETTUCEDETECT)
    if found is None or not found.submodule_search_locations:
        raise UsageError(
            "the contract “lettucedetect” is read from the package of that name: pip install "
            "lettucedetect, or name a file with the contract of your model"
        )
    folder = Path(next(iter(found.submodule_search_locations))) / "prompts"
    spec = spec_from_file_location("lettucedetect_prompts", folder / "generative.py")
    if spec is None or spec.loader is None or not (folder / "generative.py").exists():
        raise InputError(
            "has no prompt of a trained model",
            file=folder,
            expected="lettucedetect 0.2 or newer, or a contract in a file",
        )
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return folder, module


def _schema(spans: str, fields: Mapping[str, Mapping[str, str] | None]) -> dict[str, JsonValue]:
    """Return the schema of a list of objects; a field with names takes one of these."""
    properties: dict[str, JsonValue] = {
        name: {"type": "string"} | ({"enum": list(names)} if names else {})
        for name, names in fields.items()
    }
    names: list[JsonValue] = list(properties)
    span: JsonValue = {
        "type": "object",
        "properties": properties,
        "required": names,
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {spans: {"type": "array", "items": span}},
        "required": [spans],
        "additionalProperties": False,
    }
