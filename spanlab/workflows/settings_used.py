"""What a detector's findings depend on: how one request for it differs from another."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import JsonValue

from spanlab.detectors import DetectorEntry, DetectorSpec, installed
from spanlab.workflows.runs import RunRequest

# How endpoints are reached, and what they cost: no finding depends on it.
_REACHING = frozenset({"api_key_env", "base_url_env", "retries", "timeout", "price"})
_NONE = "none"


def settings_of(spec: DetectorSpec) -> dict[str, JsonValue]:
    """Return all that a detector's findings depend on by dotted names, with its defaults."""
    entry = installed().get(spec.detector)
    written = spec.model_dump(mode="json")
    if isinstance(entry, DetectorEntry):
        read = entry.options.model_validate(spec.options)
        written["options"] = read.model_dump(mode="json")
    return dict(_flat(written, ""))


def differences(before: DetectorSpec, now: DetectorSpec) -> tuple[str, ...]:
    """Say in what two specifications of a detector differ.

    Args:
        before: with which something was done.
        now: with which it is asked for.

    Returns:
        A clause for each setting, such as "calibration learnt.json (it was none)"; empty if
        findings do not depend on the difference.
    """
    was, is_now = settings_of(before), settings_of(now)
    return tuple(
        f"{name.removeprefix('options.')} {_shown(is_now.get(name))} (it was "
        f"{_shown(was.get(name))})"
        for name in dict.fromkeys((*is_now, *was))
        if is_now.get(name) != was.get(name)
    )


def covers(under_way: RunRequest, asked: RunRequest) -> bool:
    """Say whether a run does all that another is asked, whatever their pace and budgets."""
    if asked.again and not under_way.again:
        return False
    if under_way.limit not in {None, asked.limit} or under_way.items not in {None, asked.items}:
        return False
    return _asked(under_way) == _asked(asked)


def _asked(request: RunRequest) -> tuple[JsonValue, ...]:
    specs: list[JsonValue] = [settings_of(spec) for spec in request.specs]
    return request.dataset, list(request.annotators), request.retry_failed, specs


def _flat(value: JsonValue, name: str) -> Iterator[tuple[str, JsonValue]]:
    if not isinstance(value, dict):
        yield name, value
        return
    for key, inner in value.items():
        if key not in _REACHING:
            yield from _flat(inner, f"{name}.{key}".strip("."))


def _shown(value: JsonValue) -> str:
    return _NONE if value in (None, "") else str(value)
