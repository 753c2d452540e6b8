"""Sizes of parquet pages, by their headers, whatever wrote them."""

from __future__ import annotations

import io
from itertools import product

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spanlab.formats.known.parquet import pages

TABLE = pa.table(
    {
        "text": [f"number {n % 50} of a kind " * (n % 7) for n in range(3000)],
        "list": [[str(each) for each in range(n % 5)] for n in range(3000)],
        "flag": [None if n % 3 else True for n in range(3000)],
        "nested": [{"a": n, "b": {"c": str(n)}} for n in range(3000)],
    }
)


@pytest.mark.parametrize(
    ("compression", "version", "dictionary", "statistics"),
    [*product(["none", "zstd", "snappy"], ["1.0", "2.0"], [True, False], [True, False])],
)
def test_the_pages_of_a_column_are_all_that_it_holds(
    compression: str, version: str, *, dictionary: bool, statistics: bool
) -> None:
    stream = io.BytesIO()
    pq.write_table(
        TABLE,
        stream,
        compression=compression,
        data_page_version=version,
        use_dictionary=dictionary,
        write_statistics=statistics,
        data_page_size=4096,
        write_page_checksum=True,
    )
    metadata = pq.ParquetFile(stream).metadata
    for number in range(metadata.num_columns):
        chunk = metadata.row_group(0).column(number)
        start = chunk.dictionary_page_offset or chunk.data_page_offset
        found = list(pages(stream, start, start + chunk.total_compressed_size))
        assert any(page.is_dictionary for page in found) == chunk.has_dictionary_page
        # What the metadata adds to the pages is their headers, a few bytes each.
        headers = chunk.total_uncompressed_size - sum(page.size for page in found)
        assert 0 < headers < 200 * len(found)


@pytest.mark.parametrize("raw", [b"", b"\x15", b"\xff" * 40, b"\x1c" * 40, b"\x15\x00\x00"])
def test_what_is_no_header_is_said_to_be_none(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r"page|number|deep"):
        list(pages(io.BytesIO(raw), 0, max(len(raw), 1)))
