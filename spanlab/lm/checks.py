"""What an endpoint was found to do for a model, kept as one JSON file each in ``<home>/models``."""

from __future__ import annotations

import hashlib
from pathlib import Path

from pydantic import JsonValue, ValidationError

from spanlab.lm.choice import Dollars
from spanlab.schema import Count, Frozen
from spanlab.settings import Settings

STRUCTURED = "structured"  # the kind of call whose answer is JSON by a schema


class CheckedCall(Frozen):
    """One kind of call, whether the endpoint can do it, and what there is to say of it."""

    kind: str
    works: bool
    note: str = ""


class ModelCheck(Frozen):
    """What an endpoint does for a model.

    ``refused`` are the parts of requests that it does not take, as ``Dialect`` names them.
    ``seconds`` are those of a short answer, ``speed`` its tokens a second (None: not counted).
    ``cost`` of the check is in US dollars, None where no price is known. ``at`` is an ISO time.
    ``window`` is how many tokens prompt and answer may have together, None if it does not say.
    """

    model: str
    endpoint: str
    at: str
    trials: tuple[CheckedCall, ...]
    refused: tuple[str, ...] = ()
    seconds: float = 0.0
    speed: float | None = None
    window: Count | None = None
    calls: Count = 0
    input_tokens: Count = 0
    output_tokens: Count = 0
    cost: Dollars | None = None

    @property
    def figures(self) -> str:
        """How fast it is and what the check came to, in one line."""
        speed = "" if self.speed is None else f", {self.speed:g} tokens a second"
        cost = "price unknown" if self.cost is None else f"${self.cost:.4f}"
        tokens = f"{self.input_tokens:,} tokens in, {self.output_tokens:,} out"
        window = "an unknown number of" if self.window is None else f"{self.window:,}"
        return (
            f"prompt and answer may have {window} tokens; "
            f"a short answer took {self.seconds:.2f} s{speed}; "
            f"the check came to {self.calls} calls, {tokens}, {cost}"
        )

    def works(self, kind: str) -> bool:
        """Say whether the endpoint can do a kind of call; no if it was not tried."""
        return any(trial.works for trial in self.trials if trial.kind == kind)


def keep(check: ModelCheck, settings: Settings) -> None:
    """Keep a check, in place of an earlier one of that endpoint and model."""
    path = _path(check.endpoint, check.model, settings)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{check.model_dump_json(indent=2)}\n", encoding="utf-8")


def recall(endpoint: str, model: str, settings: Settings | None = None) -> ModelCheck | None:
    """Return the last check of an endpoint and model; None without a readable one."""
    try:
        path = _path(endpoint, model, settings or Settings.read())
        return ModelCheck.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


def learnt_of(endpoint: str, model: str) -> dict[str, JsonValue]:
    """Return what the last check found, as options of a model: ``structured`` and ``window``."""
    check = recall(endpoint, model)
    if check is None:
        return {"structured": False}
    return {"structured": check.works(STRUCTURED), "window": check.window}


def _path(endpoint: str, model: str, settings: Settings) -> Path:
    name = hashlib.sha256(f"{endpoint}\n{model}".encode()).hexdigest()[:32]
    return settings.home / "models" / f"{name}.json"
