"""What a detector is built with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import JsonValue

if TYPE_CHECKING:
    import dspy

    from spanlab.detectors.spec import DetectorSpec
    from spanlab.lm import Meter
    from spanlab.lm.model import LanguageModel
    from spanlab.memory import Memory, MemoryChoice
    from spanlab.retrievers import Retriever
    from spanlab.retrievers.pages import Pages
    from spanlab.schema import Predictor
    from spanlab.tools.mcp_servers import ServerState


@dataclass(frozen=True)
class Kit:
    """What a detector works with: its choices, and what was built from them.

    ``models`` are language models by the roles of the detector's entry, the main one first; a
    detector without roles gets none. ``prompts`` are those of a tuned program; None keeps the
    detector's own. ``pages`` reads web pages, for detectors whose entry says that they do.
    ``memory`` opens the memory of evidence, ``tools`` asks the servers that are named for theirs.
    """

    spec: DetectorSpec
    retriever: Retriever
    models: Mapping[str, LanguageModel]
    meter: Meter
    prompts: Mapping[str, Predictor] | None = None
    pages: Pages | None = None
    memory: Callable[[MemoryChoice], Memory] | None = None
    tools: Callable[[str], Awaitable[Sequence[ServerState]]] | None = None

    def lm(self, role: str | None = None) -> dspy.LM:
        """Return the language model of a role; that of the main role for None or any other."""
        main = next(iter(self.models.values()))
        return main if role is None else self.models.get(role, main)

    def asked(self, model: str) -> dict[str, JsonValue]:
        """Return how a model of this name is asked; an option that only some roles have by role."""
        roles = {role: lm.options for role, lm in self.models.items() if lm.model == model}
        thinking: dict[str, JsonValue] = {"thinking": True} if self.spec.reasoning else {}
        found: dict[str, JsonValue] = {}
        for role, options in roles.items():
            for name, value in options.items():
                shared = all(each.get(name) == value for each in roles.values())
                found[name if shared else f"{role}.{name}"] = value
        return found | (thinking if roles else {})

    def __deepcopy__(self, memo: object) -> Kit:
        """Return itself: the copy of a detector asks the same model, under the same meter."""
        return self
