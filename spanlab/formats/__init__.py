"""Items and annotations in and out of files.

| format | read | written |
| --- | --- | --- |
| ``spanlab`` | our own JSON Lines, lossless | yes |
| ``mushroom`` | SemEval-2025 Task 3: published files, with or without labels | submissions |
| ``ragtruth`` | ``response.jsonl`` with ``source_info.jsonl`` | no |
| ``faithbench`` | batches of FaithBench | no |
| ``labelstudio`` | Label Studio's JSON export | what Label Studio imports |
| ``claims`` | claims with labels, one a line, also as CSV; AVeriTeC's ``dev.json`` | as CSV |
| ``averitec`` | predictions as AVeriTeC's shared task has them | yes |
| ``multihop`` | questions of HotpotQA, 2WikiMultihopQA and MuSiQue, to be answered | no |
| ``csv``, ``parquet`` | ours; others with a column mapping | a row per item and annotator |
| ``arrow`` | folders that ``datasets`` saved | no |
| ``huggingface`` | its JSON Lines, as ``json`` | a zip that ``load_dataset`` reads once unpacked |
| ``json`` | any other JSON or JSON Lines, with a mapping of fields; chats | no |

Readers stream. An error names file, line, field, what was found and what would be right.
"""

from spanlab.formats.detect import detect
from spanlab.formats.known.jsonl import dumps
from spanlab.formats.read_options import ReadOptions, RejectedRecord
from spanlab.formats.readers import (
    PlacedRecord,
    read,
    read_placed,
    recipe_of,
    table_layout,
)
from spanlab.formats.registry import formats, writable
from spanlab.formats.scoring import (
    AnnotatorChooser,
    PlacedLabels,
    Role,
    read_labels,
    read_placed_claims,
    read_placed_labels,
)
from spanlab.formats.writers import format_of, write

__all__ = [
    "AnnotatorChooser",
    "PlacedLabels",
    "PlacedRecord",
    "ReadOptions",
    "RejectedRecord",
    "Role",
    "detect",
    "dumps",
    "format_of",
    "formats",
    "read",
    "read_labels",
    "read_placed",
    "read_placed_claims",
    "read_placed_labels",
    "recipe_of",
    "table_layout",
    "writable",
    "write",
]
