"""Parquet: a list column of names, the class list in the schema's metadata."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from ruleout.labels import bits
from ruleout.labels.classes import Classes
from ruleout.labels.errors import LabelError
from ruleout.labels.files.rows import COLUMN, Row, build, find, listed, parse_json, settle, split
from ruleout.labels.sets import LabelSets

__all__ = ["META", "read_parquet", "write_parquet"]

META = b"ruleout.classes"


def read_parquet(file: Path, wanted: Classes | None, column: str, unlabelled: bool) -> LabelSets:
    """Read a list column of names, or a text column of names separated by ``|``."""
    with open(file, "rb") as stream:  # a missing file stays a FileNotFoundError
        try:
            table = pq.ParquetFile(stream, page_checksum_verification=True)
            kind = table.schema_arrow.field(find(column, table.schema_arrow.names)).type
            if not _holds_names(kind):
                raise LabelError(
                    f"the column holds {kind}", "give lists of class names", column=column
                )
            meta = (table.schema_arrow.metadata or {}).get(META)
            classes = settle(None if meta is None else parse_json(meta), wanted)
            return build(_values(table, column), classes, column, unlabelled)
        except (pa.ArrowException, OSError, UnicodeDecodeError):
            raise LabelError("this is not a readable Parquet file", "write it again") from None


def _holds_names(kind: pa.DataType) -> bool:
    """Accept text, lists of text or whole numbers, and dictionary forms of these."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        kind = kind.value_type
        if pa.types.is_integer(kind) or pa.types.is_null(kind):
            return True
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return any(
        test(kind)
        for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    )


def _values(table: pq.ParquetFile, column: str) -> Iterator[Row]:
    row = 0
    for batch in table.iter_batches(batch_size=8192, columns=[column]):
        for value in batch.column(0).to_pylist():
            names = split(value) if isinstance(value, str) else value
            yield None, listed(names, row=row, column=column)
            row += 1


def write_parquet(sets: LabelSets, out: IO[bytes]) -> None:
    """Write one list column."""
    kind = pa.list_(pa.string() if isinstance(sets.classes[0], str) else pa.int64())
    schema = pa.schema([(COLUMN, kind)], metadata={META: json.dumps(sets.classes).encode()})
    with pq.ParquetWriter(out, schema, write_page_checksum=True) as table:
        for piece in bits.chunks(*sets.shape):
            rows = pa.array(sets[piece].to_lists(), kind)
            table.write_batch(pa.record_batch([rows], schema=schema))
