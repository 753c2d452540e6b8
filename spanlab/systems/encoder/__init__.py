"""Local encoders: classifiers of tokens, and of pairs of texts, that run on this machine.

    detector ───── ``encoder``: every word of an answer is rated, in the format of a checkpoint
    verifier ───── ``encoder-nli``, ``encoder-nli-claims``: sentences or claims are judged
    words ──────── from tokens to words to spans: the rule, and probabilities as people have them
    training ───── a checkpoint of one's own, from labels; ``fitting`` is its part in PyTorch

Folders, networks and tokenizers are in ``detect/networks``, for any detector that runs one.
What the detectors say of themselves, and their options.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from pydantic import Field, JsonValue

from spanlab.detection.common import EXTRACTOR, ClaimsOption, claim_calls
from spanlab.detection.entry import (
    JUDGE,
    CallEstimate,
    ChosenOptions,
    DetectorEntry,
    DetectorOptions,
    PromptSize,
)
from spanlab.networks.devices import BATCH, Device, DeviceOptions

FormatName = Literal["lettucedetect", "pair"]
_PATH: Final[dict[str, JsonValue]] = {
    "format": "path"
}  # what people who reach the app from elsewhere may not choose freely
WINDOW = 4096  # tokens at most, also where a checkpoint takes more: the cost grows with the square


class EncoderOptions(DetectorOptions):
    """Which checkpoint is run, and how."""

    model: str = Field(
        "",
        title="Checkpoint",
        description="Folder with model.onnx, tokenizer.json and config.json, or the name of a "
        "checkpoint that `spanlab encoder fetch` has downloaded.",
        json_schema_extra=_PATH,
    )
    weights: str = Field(
        "",
        description="ONNX file in that folder, such as onnx/model_int8.onnx; by default "
        "model.onnx or onnx/model.onnx.",
    )
    supported: str = Field(
        "",
        title="Labels for “supported”",
        description="The labels that mean “supported”, with commas between; needed where the "
        "checkpoint does not call them so (LettuceDetect: LABEL_0, MiniCheck: 1).",
    )
    window: int = Field(
        0,
        ge=0,
        le=131_072,
        description="Most tokens per forward pass; 0: as many as the checkpoint takes, up to "
        f"{WINDOW:,}. Longer input is read in overlapping windows.",
    )
    batch: int = Field(BATCH, ge=1, le=1024, description="Rows per forward pass.")
    device: Device = Field("cpu", description="Where the network runs.")
    threads: int = Field(0, ge=0, le=1024, description="CPU threads; 0: one per core.")

    @property
    def running(self) -> DeviceOptions:
        """Where the network is run."""
        return DeviceOptions(self.device, self.threads)


class TokenOptions(EncoderOptions):
    """How words are rated."""

    format: FormatName | None = Field(
        None,
        description="What the checkpoint reads before the answer, as it was trained; default: "
        "what `spanlab encoder train` noted in its configuration, else lettucedetect. "
        "LettuceDetect's prompts in other languages than English come from its package, where "
        "that is installed.",
    )
    template: str = Field(
        "",
        description="A template of your own in place of the format: text with {passages} and, "
        "where wanted, {question} and {count}.",
    )
    label: str = Field(
        "",
        title="Before each passage",
        description="What comes before each passage in that template; {number} is its number.",
    )
    windows: Literal["any", "mean"] = Field(
        "any",
        description="How windows are combined: a word is supported if any window supports it, "
        "or by the mean of all.",
    )
    floor: float = Field(
        0.2,
        title="Lowest probability marked",
        ge=0.0,
        le=1.0,
        description="Words with at least this probability are marked.",
    )
    threshold: float | None = Field(
        None,
        ge=0.0,
        le=1.0,
        description="Words with at least this probability count as hallucinated; default: the "
        "calibration's threshold, else 0.5.",
    )
    calibration: str = Field(
        "", description="A file that `spanlab calibrate` wrote.", json_schema_extra=_PATH
    )


class NliOptions(EncoderOptions):
    """How sentences are judged."""

    best: int = Field(
        1,
        title="Windows averaged",
        ge=1,
        le=100,
        description="A verdict is the mean support of this many windows, the best ones; 1: the "
        "maximum.",
    )
    threshold: float = Field(
        0.5, ge=0.0, le=1.0, description="Supported with at least this probability."
    )
    refuted: float = Field(
        0.5,
        ge=0.0,
        le=1.0,
        description="Refuted with at least this probability of a contradiction, where the "
        "checkpoint has that class.",
    )
    neutral: Literal["not-supported", "not-enough-evidence"] = Field(
        "not-supported",
        description="Verdict where neither holds; claims without enough evidence are not marked.",
    )


class NliClaimOptions(NliOptions, ClaimsOption):
    """How claims are judged."""


def _claim_calls(size: PromptSize, spec: ChosenOptions) -> Iterable[CallEstimate]:
    return claim_calls(size, NliClaimOptions.model_validate(spec.options)).calls


def _learnt(options: TokenOptions) -> Iterable[str]:
    from spanlab.networks.checkpoint import open_folder
    from spanlab.systems.encoder.detector import NOTED

    noted = open_folder(options.model, options.weights).config.get(NOTED)
    return noted.get("learnt_from", ()) if isinstance(noted, dict) else ()


ENCODER = DetectorEntry(
    name="encoder",
    title="Rates every word",
    what="a local classifier of tokens, such as LettuceDetect's, rates every word",
    needs="a checkpoint (option model), passages, and pip install 'spanlab[encoder]'",
    create="spanlab.systems.encoder.detector:create",
    options=TokenOptions,
    learnt=_learnt,
    required=("model",),
    batches=True,
)
NLI = DetectorEntry(
    name="encoder-nli",
    title="Judges every sentence",
    what="a local NLI or fact-checking classifier judges every sentence",
    needs="a checkpoint (option model), passages, and pip install 'spanlab[encoder]'",
    create="spanlab.systems.encoder.verifier:create_sentences",
    options=NliOptions,
    required=("model",),
    batches=True,
)
NLI_CLAIMS = DetectorEntry(
    name="encoder-nli-claims",
    title="Judges every claim",
    what="a model extracts claims, and a local NLI or fact-checking classifier judges them",
    needs="what encoder-nli needs, and a model, 3 calls a sentence and one a claim",
    create="spanlab.systems.encoder.verifier:create_claims",
    options=NliClaimOptions,
    roles=(EXTRACTOR, JUDGE),
    estimate=_claim_calls,
    required=("model",),
)
