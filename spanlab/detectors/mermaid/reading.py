"""A step of an agent as models write it: ReAct's many spellings of a call and of an answer.

{"thought": …, "action": {"tool": "search", "arguments": {"query": …}}}     what is asked for
{"thought": …, "action": {"name": "search", "input": …}}                    MERMAID, A.2
{"thought": …, "action": "search", "action_input": …}                       also "arguments" …
{"thought": …, "action": {"search": {"query": …}}}                          or without "action"
{"thought": …, "action": "search[…]"}                                       ReAct; also search(…)
{"thought": …, "action": {"name": "Answer", "input": "True"}}               Finish[…], and so on
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from pydantic import JsonValue

from spanlab.claims import four_classes
from spanlab.schema import Verdict

_NOTHING: Final = frozenset(("", "none", "null", "n/a", "unknown yet", "open"))
_TOOL: Final = ("tool", "name", "tool_name", "action", "function")
_INPUT: Final = (
    *("arguments", "input", "action_input", "tool_input", "args", "parameters", "params"),
    *("action_arguments", "action_args", "query"),
)
_ACTION: Final = ("action", "tool_call", "function_call", "tool_calls", "call")
_ANSWER: Final = ("answer", "final_answer", "final", "finish", "conclusion", "verdict")
_THOUGHT: Final = ("thought", "thoughts", "reasoning", "reason")
_ASIDE: Final = frozenset((*_TOOL, *_INPUT, *_ACTION, *_THOUGHT, "observation", "step"))
_CALL: Final = re.compile(
    r"([\w.-]+(?: answer)?)\s*(?:\[(.*)\]|\((.*)\)|:\s+(.*))", re.DOTALL | re.IGNORECASE
)
_NAMED: Final = re.compile(r"(\w+)\s*=\s*([\"'])(.*)\2", re.DOTALL)


def react_step(data: object) -> object:
    """Return a step with "thought", "action" and "answer", however it was written."""
    if not isinstance(data, Mapping):
        return data
    given = _keyed(data)
    call = action(_first(given, _ACTION) or _without_name(given))
    if call is not None and call["arguments"] is None:
        call["arguments"] = _first(given, _INPUT)
    answer = _first(given, _ANSWER)
    if call is not None and _word(call["tool"]) in _ANSWER:
        given_with = call["arguments"]
        inner = _keyed(given_with) if isinstance(given_with, Mapping) else {}
        answer = (
            answer or _first(inner, (*_ANSWER, "label")) or next(iter(inner.values()), given_with)
        )
        call = None
    return {"thought": _first(given, _THOUGHT), "action": call, "answer": answer}


def action(value: object) -> dict[str, Any] | None:
    """Read an action: the tool, and the arguments as they stand there; None for no action."""
    if isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, str):
        text = value.strip()
        if text.casefold() in _NOTHING:
            return None
        call = _CALL.fullmatch(text)
        inner = next((part for part in call.groups()[1:] if part is not None), "") if call else None
        return {"tool": call[1] if call else text, "arguments": _written(inner)}
    if not isinstance(value, Mapping) or not value:
        return None
    given = _keyed(value)
    tool = _first(given, _TOOL)
    if isinstance(tool, Mapping):  # {"function": {"name": …, "arguments": …}}
        return action(tool)
    if tool is not None:
        return {"tool": str(tool), "arguments": _first(given, _INPUT)}
    others = [key for key in value if _word(key) not in _ASIDE]
    return {"tool": str(others[0]), "arguments": value[others[0]]} if len(others) == 1 else None


def arguments(value: object) -> dict[str, JsonValue]:
    """Read the arguments of a call, also as JSON in a text; a bare text is one argument."""
    if isinstance(value, str) and value.lstrip()[:1] == "{":
        try:
            value = json.loads(value)
        except ValueError:
            return {"input": str(value)}
    if isinstance(value, Mapping):
        return {str(name): argument for name, argument in value.items()}
    return {} if value is None else {"input": value if isinstance(value, str) else str(value)}


def answered(value: object) -> Verdict | None:
    """Read an answer: None where there is none yet, or one that is no verdict."""
    text = str(value if value is not None else "").strip(" .[]*\"'`").casefold()
    if text in _NOTHING:
        return None
    try:
        return four_classes(text)
    except ValueError:
        return None


def _without_name(given: Mapping[str, Any]) -> object:
    """Return what stands for an action in a step that has no field of this name."""
    if (tool := _first(given, ("tool", "tool_name", "name"))) is not None:
        return tool if isinstance(tool, Mapping | list) else {"tool": tool}
    calls = {key: argument for key, argument in given.items() if key not in {*_ASIDE, *_ANSWER}}
    return {key: call for key, call in calls.items() if isinstance(call, Mapping)}


def _written(inner: str | None) -> object:
    """Return what stands in the brackets of a call: an argument by its name, or a bare one."""
    if inner is None or not inner.strip():
        return None
    named = _NAMED.fullmatch(inner.strip())
    return {named[1]: named[3]} if named else inner.strip().strip("\"'")


def _keyed(data: Mapping[Any, Any]) -> dict[str, Any]:
    return {_word(key): field for key, field in data.items()}


def _word(name: object) -> str:
    return re.sub(r"[^\w.-]+", "_", str(name).strip().casefold()).strip("_")


def _first(given: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    """Return the first field of these names that holds something; None if none does."""
    return next((given[name] for name in names if given.get(name) not in (None, "", {}, [])), None)
