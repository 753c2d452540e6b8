"""``span-model``: a model that was trained to name hallucinated spans, behind any endpoint.

Such a model reads one prompt, that of its training, and writes one form of reply. Both are its
contract, which is read from a file or from the package that came with the model; none is in
spanlab's code.

    contract   a file or package → what is sent, and where in the reply the spans stand
    detector   one call → quotes → their places, with label and explanation
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from pydantic import Field

from spanlab.detection.entry import JUDGE, CallEstimate, ChosenOptions, DetectorEntry, PromptSize
from spanlab.detection.entry import DetectorOptions as _DetectorOptions
from spanlab.models import ModelOptions
from spanlab.schema import Probability

LETTUCEDETECT: Final = "lettucedetect"  # a contract, and the package that it is in


class SpanModelOptions(_DetectorOptions):
    """What the model was trained to read and write, and what of that is marked."""

    contract: str = Field(
        LETTUCEDETECT,
        description="A JSON or TOML file with the model's contract, or lettucedetect for the "
        "one in the installed package of that name.",
    )
    explain: bool = Field(
        False, description="Ask for an explanation of each span, if the contract has one."
    )
    prob: Probability = Field(
        1.0, title="Span probability", description="Of every span, as such models report none."
    )


def _files(options: SpanModelOptions) -> Iterable[Path]:
    """Return the files of the contract; those of a package without loading it."""
    if options.contract != LETTUCEDETECT:
        return (Path(options.contract),)
    found = find_spec(LETTUCEDETECT)
    folders = (found and found.submodule_search_locations) or ()
    return [path for folder in folders for path in Path(folder, "prompts").glob("*.*")]


def _calls(size: PromptSize, spec: ChosenOptions) -> Iterable[CallEstimate]:
    yield CallEstimate(1, size.whole, 40 + size.answer)


ENTRY = DetectorEntry(
    name="span-model",
    title="Asks a trained span model",
    what="a model trained for it names the hallucinated spans, their kind and why",
    needs="a model trained to name spans, one call an item; passages or a retriever",
    create="spanlab.systems.span_model.detector:create",
    options=SpanModelOptions,
    roles=(JUDGE,),
    asked=ModelOptions(temperature=0.0),  # as such models are evaluated
    data=_files,
    estimate=_calls,
)
