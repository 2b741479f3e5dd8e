"""Parquet as columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as kinds

from ruleout.datasets.errors import DataError
from ruleout.datasets.tables.columns import Cells, Columns, check_memory
from ruleout.datasets.tables.text import Choose
from ruleout.labels.files.parquet import META
from ruleout.labels.files.rows import parse_json

__all__ = ["read_parquet"]


def read_parquet(file: Path, choose: Choose, labels: Sequence[str]) -> Columns:
    """Read the features that `choose` picks, and the columns of labels."""
    with open(file, "rb") as stream:
        try:
            source = pq.ParquetFile(stream, page_checksum_verification=True)
            schema = source.schema_arrow
            features = choose(list(schema.names))
            check_memory(source.metadata.num_rows, max(len(features), 1))
            table = source.read(columns=[*features, *labels])
        except (pa.ArrowException, OSError, UnicodeDecodeError, OverflowError):
            raise DataError("this is not a readable Parquet file", "write it again") from None
    meta: Any = (schema.metadata or {}).get(META)
    cells = {name: _cells(table.column(name), name) for name in labels}
    return Columns(table.select(features), cells, None if meta is None else parse_json(meta))


def _cells(column: pa.ChunkedArray, name: str) -> Cells:
    """Return text as text, lists as lists; whole numbers and true/false become text."""
    kind = column.type
    if kinds.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind):
        return list(column.to_pylist())
    texts = (kinds.is_string, kinds.is_large_string, kinds.is_string_view)
    if any(test(kind) for test in (*texts, kinds.is_integer, kinds.is_boolean, kinds.is_null)):
        return column.cast(pa.string())
    if kinds.is_floating(kind):  # what pandas makes of whole numbers with gaps
        try:
            return column.cast(pa.int64()).cast(pa.string())
        except pa.ArrowInvalid:
            pass
    raise DataError(f"the column holds {kind}", "give class names or whole numbers", column=name)
