"""The formats of files: one file for each, or for some that are alike.

Whoever adds one adds a line here; all else (what its records look like, what is read as what)
stands beside its reader.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class BuiltInFormat(NamedTuple):
    """A format that comes with spanlab: its name on screen, and where its reader is."""

    title: str
    reader: str


_HERE: Final = "spanlab.formats.known"
FORMATS: Final[dict[str, BuiltInFormat]] = {
    "spanlab": BuiltInFormat("spanlab JSONL", f"{_HERE}.jsonl:SpanlabReader"),
    "mushroom": BuiltInFormat("Mu-SHROOM", f"{_HERE}.mushroom:MushroomReader"),
    "ragtruth": BuiltInFormat("RAGTruth", f"{_HERE}.ragtruth:RagTruthReader"),
    "faithbench": BuiltInFormat("FaithBench", f"{_HERE}.faithbench:FaithBenchReader"),
    "labelstudio": BuiltInFormat("Label Studio", f"{_HERE}.labelstudio_reader:LabelStudioReader"),
    "argilla": BuiltInFormat("Argilla", f"{_HERE}.argilla:ArgillaReader"),
    "prodigy": BuiltInFormat("Prodigy", f"{_HERE}.prodigy:ProdigyReader"),
    "claims": BuiltInFormat("Claims with labels (AVeriTeC)", f"{_HERE}.claims:ClaimsReader"),
    "parts": BuiltInFormat(
        "Answers whose parts are judged (FELM, FActScore, FAVA)",
        f"{_HERE}.judged_parts:JudgedPartsReader",
    ),
    "averitec": BuiltInFormat("AVeriTeC predictions", f"{_HERE}.averitec:AveritecReader"),
    "multihop": BuiltInFormat(
        "Questions of HotpotQA, 2WikiMultihopQA or MuSiQue", f"{_HERE}.multihop:MultihopReader"
    ),
    "graphrag": BuiltInFormat(
        "GraphRAG's output, with queries.jsonl", f"{_HERE}.graphrag:GraphRagReader"
    ),
    "summaries": BuiltInFormat(
        "Hierarchical summaries (BooookScore)", f"{_HERE}.summaries:SummariesReader"
    ),
    "traces": BuiltInFormat("OpenTelemetry traces", f"{_HERE}.traces:TraceReader"),
    "json": BuiltInFormat("JSON or JSON Lines of other fields", f"{_HERE}.json_table:JsonReader"),
    "csv": BuiltInFormat("CSV", f"{_HERE}.csv_table:CsvReader"),
    "workbook": BuiltInFormat("Excel workbook", f"{_HERE}.workbook:WorkbookReader"),
    "parquet": BuiltInFormat("Parquet", "spanlab.formats.parquet:ParquetReader"),
    "arrow": BuiltInFormat("Arrow (Hugging Face datasets)", "spanlab.formats.arrow:ArrowReader"),
}
