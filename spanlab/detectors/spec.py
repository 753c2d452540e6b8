"""Which detector, with which model, retriever and mapper: a choice that can be kept as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationError, model_validator

from spanlab.errors import InputError
from spanlab.fields import Frozen, Name, Probability, unique
from spanlab.lm import ModelChoice
from spanlab.retrievers import RetrieverSpec

CONTEXT_BUDGET = 60_000  # characters of passages in a prompt: about 15,000 tokens of English


class MapperOptions(Frozen):
    """How what a model said becomes spans; see ``spanlab.mappers``.

    ``floor`` is how alike a quote and its place must be. ``refine`` and ``insertions`` say what of
    a revision is marked; ``prob`` is the probability of its spans, None for the size of change.
    """

    floor: Probability = 0.85
    refine: Literal["word", "char"] = "word"
    insertions: bool = False
    prob: Probability | None = None


class DetectorSpec(Frozen):
    """A detector and what it works with.

    ``name`` signs the annotations (default: the detector's own name). Without ``model`` the
    environment names it; without ``retriever`` the item's own passages are read. ``program`` names
    a tuned prompt of the registry; "none" keeps the detector's own even where another is its
    default. ``reasoning`` lets the model think in words before it answers. ``guidance`` is added
    to the detector's instruction. ``context`` bounds the passages in a prompt, in characters.
    """

    detector: Name
    name: Name | None = None
    model: ModelChoice | None = None
    retriever: RetrieverSpec | None = None
    mapper: MapperOptions = MapperOptions()
    program: Name | None = None
    reasoning: bool = False
    guidance: str | None = None
    context: Annotated[int, Field(ge=1000)] = CONTEXT_BUDGET

    @property
    def signs(self) -> str:
        """The annotator name of what it finds."""
        return self.name or self.detector


class EnsembleSpec(Frozen):
    """Detectors that vote: every member signs its own annotation, ``name`` signs the vote."""

    name: Name
    members: Annotated[tuple[DetectorSpec, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _everyone_signs_differently(self) -> Self:
        unique((self.name, *(member.signs for member in self.members)), "annotator")
        return self

    @property
    def signs(self) -> str:
        """The annotator name of the vote."""
        return self.name

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read an ensemble from a JSON file.

        Raises:
            InputError: the file cannot be read or is no ensemble; names the field.
        """
        try:
            return cls.model_validate(json.loads(path.read_bytes()))
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", file=path) from error
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise InputError(
                "not an ensemble of detectors",
                file=path,
                field=".".join(str(part) for part in first["loc"]) or None,
                expected=first["msg"],
            ) from None
        except ValueError as error:
            raise InputError(f"not JSON: {error}", file=path) from error


Spec = DetectorSpec | EnsembleSpec
