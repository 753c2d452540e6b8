"""An assertion of promptfoo: how much of an output its passages support.

In a file beside promptfooconfig.yaml, which the assertion names as ``file://grounded.py``:

    from spanlab.integrations.promptfoo_assertion import get_assert
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from spanlab.base.errors import UsageError
from spanlab.base.fields import check_share
from spanlab.integrations.verdicts import AT_LEAST, judge

_PASSAGES: Final = ("passages", "context", "contexts", "documents")
_QUESTIONS: Final = ("question", "query", "input")


def get_assert(output: str, context: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of the assertion: pass, score and reason.

    Args:
        output: what the model said.
        context: what promptfoo knows of the test. Variables, or what the provider returned as
            metadata, have the passages (``passages``, ``context``, ``contexts``, ``documents``) and
            the question. The assertion's ``config`` may have ``passages`` and ``question``, other
            names of these; ``threshold``, the least share that passes (0.9); and ``detector`` with
            options of ``spanlab.detect``.

    Raises:
        UsageError: no variable has the passages, or ``threshold`` is no share.
        SpanlabError: the detector failed, or could not be used.
    """
    config = dict(context.get("config") or {})
    known = {**(context.get("metadata") or {}), **(context.get("vars") or {})}
    name = _name(config.pop("passages", None), _PASSAGES, known)
    asked = _name(config.pop("question", None), _QUESTIONS, known)
    if name not in known:
        raise UsageError(f"no variable {name!r} has the passages; available: {', '.join(known)}")
    threshold = check_share("threshold", config.pop("threshold", AT_LEAST))
    verdict = judge(output, known[name], str(known.get(asked, "")), **config)
    return {
        "pass": verdict.score >= threshold,
        "score": verdict.score,
        "reason": verdict.reason,
        "namedScores": {"grounded": verdict.score},
    }


def _name(chosen: str | None, usual: tuple[str, ...], known: Mapping[str, Any]) -> str:
    """Return the name that was chosen, else the first usual one that is known."""
    return chosen or next((name for name in usual if name in known), usual[0])
