# the sentences stand as users read them
"""The bad-input table for users' data: each file, and the exact sentence that is read."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ruleout.datasets.tables import Table, draw_table, read_table
from ruleout.labels.errors import InputError

GOOD = "a,b,not\n1,2,cat|dog\n3,4,fish\n"


def given(name: str, content: str | bytes, **options: Any) -> Callable[[], Table]:
    """Write a file of that name into the current folder, then read it."""

    def read() -> Table:
        Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
        return read_table(name, **{"excluded": "not", **options})

    return read


def npz(**arrays: Any) -> bytes:
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def parquet(**columns: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()


def lying() -> bytes:
    """An archive whose array header claims a terabyte and holds nothing."""
    header, out = io.BytesIO(), io.BytesIO()
    claim = {"descr": "<f4", "fortran_order": False, "shape": (10**9, 10**3)}
    np.lib.format.write_array_header_1_0(header, claim)
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("x.npy", header.getvalue())
    return out.getvalue()


def folder() -> Table:
    Path("data.csv").mkdir()
    return read_table("data.csv")


def near() -> Table:
    Path("pets.csv").write_text(GOOD)
    return read_table("pest.csv")


def redrawn(content: str, out: str, **options: Any) -> Callable[[], object]:
    def call() -> object:
        Path("a.csv").write_text(content)
        return draw_table("a.csv", out, **{"label": "y", **options})

    return call


def far() -> object:
    """Draw from a table with a date that is too far away for Python."""
    Path("a.parquet").write_bytes(parquet(a=pa.array([2**62, 0], pa.timestamp("us")), y=["b", "c"]))
    return draw_table("a.parquet", "b.csv", label="y")


def pipe() -> Table:
    Path("a.csv").symlink_to("/dev/null")
    return read_table("a.csv")


x = np.ones((2, 3))
mask = np.array([[1, 0, 0], [0, 1, 1]], bool)
columns = {"kind": "columns", "features": ["a", "b"]}
images = {"kind": "images", "shape": [1, 4, 4], "scale": "0 to 1"}

TABLE: list[tuple[str, Callable[[], object], str]] = [
    # what is asked for
    ("type", given("a.xls", GOOD), "a.xls: unknown file type '.xls'; use .csv, .tsv, .parquet, .jsonl, .npz, .mat, .json, or a folder of images"),
    ("missing", near, "pest.csv: there is no such file; did you mean 'pets.csv'?"),
    ("missing folder", lambda: read_table("no/a.csv"), "no/a.csv: there is no such file; the folder no does not exist either"),
    ("folder", folder, "data.csv: the folder holds no images; their names end in .png, .jpg, .jpeg, .bmp, .gif, .webp"),
    ("device", pipe, "a.csv: this is not a file; give the name of a file"),
    ("column", given("a.csv", GOOD, excluded="nto"), "a.csv: there is no column 'nto'; did you mean 'not'?"),
    ("label", given("a.csv", GOOD, label="truth"), "a.csv: there is no column 'truth'; the columns are 'a', 'b', 'not'"),
    ("ignore", given("a.csv", GOOD, ignore=["id"]), "a.csv: there is no column 'id'; the columns are 'a', 'b', 'not'"),
    ("features", given("a.csv", GOOD, features=["b", "aa"]), "a.csv: there is no column 'aa'; did you mean 'a'?"),
    ("many features", given("a.csv", GOOD, features=["b", "c", "d"]), "a.csv: 2 columns are missing: 'c', 'd'; the columns are 'a', 'b', 'not'"),
    ("feature twice", given("a.csv", GOOD, features=["b", "b"]), "a.csv: feature 'b' is asked for twice; name each feature once"),
    ("label feature", given("a.csv", GOOD, features=["b", "not"]), "a.csv: column 'not' holds labels and is asked for as a feature; take it out of the features"),
    ("ignored label", given("a.csv", GOOD, ignore=["not"]), "a.csv: column 'not' is asked for and ignored; do one of the two"),
    ("same column", given("a.csv", GOOD, label="not"), "a.csv: column 'not' is asked for as ruled-out classes and as true labels; name two columns"),
    ("nothing left", given("a.csv", GOOD, ignore=["a", "b"]), "a.csv: no column is left as a feature; the columns are 'a', 'b', 'not'"),
    ("size", given("a.csv", GOOD, size=(2, 2)), "a.csv: this is a file; only a folder of images takes a size and labels"),
    ("images wanted", given("a.csv", GOOD, reading=images), "a.csv: this is a table, and images are wanted; give a folder of images"),
    # CSV
    ("empty", given("a.csv", ""), "a.csv: the file is empty; give a first line that names the columns"),
    ("blank", given("a.csv", "\n\n"), "a.csv, line 1: the first line is blank; name the columns there"),
    ("no rows", given("a.csv", "a,b,not\n"), "a.csv: the file has no rows; give at least one"),
    ("no line end", given("a.csv", "a,b,not"), "a.csv: the file has no rows; give at least one"),
    ("twice", given("a.csv", "a,a,not\n1,2,cat\n"), "a.csv: column 'a' appears twice; name each column once"),
    ("semicolons", given("a.csv", "a;b;not\n1,2,cat\n"), "a.csv: the header is 'a;b;not'; separate columns by commas, semicolons or tabs in every line"),
    ("ragged", given("a.csv", GOOD + "5,6\n"), "a.csv, line 4: the row has 2 cells where the header has 3; give every row the same cells, and quote cells that hold the separator"),
    ("wide", given("a.csv", GOOD + "5,6,cat,dog\n"), "a.csv, line 4: the row has 4 cells where the header has 3; give every row the same cells, and quote cells that hold the separator"),
    ("open quote", given("a.csv", GOOD + '5,6,"cat\n7,8,dog\n'), "a.csv, line 5: this is not valid CSV (unexpected end of data); fix the quotes"),
    ("latin", given("a.csv", "größe,not\n1,cat\n".encode("latin-1")), "a.csv: this is not UTF-8 text; save the file as UTF-8"),
    ("utf-16", given("a.csv", GOOD.encode("utf-16")), "a.csv: this is not UTF-8 text; save the file as UTF-8"),
    ("latin name", given("a.csv", ("a,not\n" + "1,cat\n" * 9000).encode() + b"2,b\xe4r\n"), "a.csv: this is not UTF-8 text; save the file as UTF-8"),
    ("text", given("a.csv", "city,not\nParis,cat|dog\nRome,fish\n"), "a.csv, line 2, column 'city': 'Paris' is not a number; ignore the column (--ignore city), take its words (--text city), or turn it into numbers (2 rows: lines 2, 3)"),
    ("text late", given("a.csv", "a,not\n" + "1,cat\n" * 9000 + "x,dog\n"), "a.csv, line 9002, column 'a': 'x' is not a number; ignore the column (--ignore a), take its words (--text a), or turn it into numbers"),
    ("date", given("a.csv", "when,not\n2020-01-01,cat\n2020-01-02,dog\n"), "a.csv, line 2, column 'when': '2020-01-01' is not a number; ignore the column (--ignore when), take its words (--text when), or turn it into numbers (2 rows: lines 2, 3)"),
    ("empty cell", given("a.csv", "a,b,not\n1,2,cat\n3,,dog\n"), "a.csv, line 3, column 'b': the cell is empty; fill it in, drop the row, or ignore the column"),
    ("NA", given("a.csv", "a,b,not\n1,2,cat\n3,NA,dog\n"), "a.csv, line 3, column 'b': the cell is empty; fill it in, drop the row, or ignore the column"),
    ("empty column", given("a.csv", "a,b,not\n1,,cat\n3,,dog\n"), "a.csv, line 2, column 'b': the cell is empty; fill it in, drop the row, or ignore the column (2 rows: lines 2, 3)"),
    ("inf", given("a.csv", "a,b,not\n1,2,cat\n3,-inf,dog\n"), "a.csv, line 3, column 'b': the cell is infinite; fill it in, drop the row, or ignore the column"),
    ("huge", given("a.csv", "a,b,not\n1,2,cat\n3,1e39,dog\n"), "a.csv, line 3, column 'b': 1e+39 is too large for float32; scale the column"),
    ("no data", given("a.csv", "a,b,not\n1,2,cat\n3,-3.4028235e38,dog\n"), "a.csv, line 3, column 'b': -3.40282e+38 is too large for float32; scale the column"),
    ("huge whole", given("a.csv", f"a,b,not\n1,2,cat\n3,{10**60},dog\n"), "a.csv, line 3, column 'b': 1e+60 is too large for float32; scale the column"),
    ("underscore", given("a.csv", "a,b,not\n1,+2,cat\n3,1_000,dog\n"), "a.csv, line 3, column 'b': '1_000' is not a number; ignore the column (--ignore b), take its words (--text b), or turn it into numbers"),
    ("nothing ruled out", given("a.csv", GOOD + "5,6,\n"), "a.csv, line 4, column 'not': nothing is ruled out; rule out at least one class, drop the row, or pass unlabelled=True"),
    ("unknown class", given("a.csv", GOOD, classes=["cat", "dog", "bird", "fisch"]), "a.csv, line 3, column 'not': unknown class 'fish'; did you mean 'fisch'?"),
    ("all ruled out", given("a.csv", "a,not\n1,cat|dog\n2,cat\n"), "a.csv, line 2, column 'not': every class is ruled out; if there are more classes, name them all with --classes, else leave the row out (--skip-bad-rows)"),
    ("one class", given("a.csv", "a,not\n1,cat\n2,cat\n"), "a.csv, column 'not': 1 class name(s) occur in the data; name all classes with classes=[...] (--classes cat,dog,bird)"),
    ("commas", given("a.csv", 'a,not\n1,"cat,dog"\n2,dog\n'), "a.csv: 'cat,dog' looks like several class names; separate class names by |, or name all classes with classes=[...]"),
    ("class list", given("a.csv", 'a,not,"classes: [1, "\n1,cat,\n'), "a.csv, line 1: this is not valid JSON; fix or remove it"),
    ("empty label", given("a.csv", GOOD.replace("\n", ",y\n", 1).replace("dog\n", "dog,cat\n").replace("fish\n", "fish,\n"), label="y"), "a.csv, line 3, column 'y': the cell is empty; fill in the label or drop the row"),
    ("unknown label", given("a.csv", "a,y\n1,cat\n2,cow\n", excluded=None, label="y", classes=["cat", "dog"]), "a.csv, line 3, column 'y': unknown class 'cow'; the classes are 'cat', 'dog'"),
    # TSV
    ("tsv", given("a.tsv", "a\tnot\n1\tcat\n2\n"), "a.tsv, line 3: the row has 1 cells where the header has 2; give every row the same cells, and quote cells that hold the separator"),
    # JSONL
    ("jsonl empty", given("a.jsonl", ""), "a.jsonl: there is no column 'not'; the file has none"),
    ("jsonl no rows", given("a.jsonl", '{"classes": ["cat", "dog"]}\n', excluded=None, featureless=True), "a.jsonl: the file has no rows; give at least one"),
    ("jsonl broken", given("a.jsonl", '{"a": 1, "not": ["cat"]}\n{"a": \n'), "a.jsonl, line 2: this is not valid JSON; fix or remove it"),
    ("jsonl list", given("a.jsonl", "[1]\n"), 'a.jsonl, line 1: the line holds [1], not an object; write lines like {"excluded": ["cat", "dog"]}'),
    ("jsonl missing key", given("a.jsonl", '{"a": 1, "not": ["cat"]}\n{"not": ["dog"]}\n'), "a.jsonl, line 2, column 'a': the cell is empty; fill it in, drop the row, or ignore the column"),
    ("jsonl text", given("a.jsonl", '{"a": 1, "not": ["cat"]}\n{"a": "2", "b": 1, "not": ["dog"]}\n{"a": "x", "not": ["dog"]}\n'), "a.jsonl, line 3, column 'a': 'x' is not a number; ignore the column (--ignore a), take its words (--text a), or turn it into numbers"),
    ("jsonl nested", given("a.jsonl", '{"a": {"b": 1}, "not": ["cat"]}\n{"a": {"b": 1}, "not": ["dog"]}\n'), "a.jsonl, line 1, column 'a': \"{'b': 1}\" is not a number; ignore the column (--ignore a), take its words (--text a), or turn it into numbers (2 rows: lines 1, 2)"),
    ("jsonl NaN", given("a.jsonl", '{"a": 1, "not": ["cat"]}\n{"a": NaN, "not": ["dog"]}\n'), "a.jsonl, line 2, column 'a': the cell is empty; fill it in, drop the row, or ignore the column"),
    ("jsonl huge", given("a.jsonl", '{"a": 1, "not": ["cat"]}\n{"a": 1' + "0" * 400 + ', "not": ["dog"]}\n'), "a.jsonl, line 2, column 'a': the cell is infinite; fill it in, drop the row, or ignore the column"),
    ("jsonl object", given("a.jsonl", '{"a": 1, "not": ["cat", "dog"]}\n{"a": 2, "not": {"cat": 1}}\n'), "a.jsonl, line 2, column 'not': the row holds {'cat': 1}, not a list; give class names"),
    ("jsonl objects", given("a.jsonl", '{"a": 1, "not": {"cat": 1}}\n' * 2), "a.jsonl, column 'not': the row holds {'cat': 1}, not a list; give class names"),
    ("jsonl number", given("a.jsonl", '{"a": 1, "not": ["cat", "dog"]}\n{"a": 2, "not": [1.5]}\n', classes=["cat", "dog", "cow"]), "a.jsonl, line 2, column 'not': unknown class 1.5; the classes are 'cat', 'dog', 'cow'"),
    # Parquet
    ("parquet broken", given("a.parquet", b"PAR1nonsense"), "a.parquet: this is not a readable Parquet file; write it again"),
    ("parquet empty", given("a.parquet", b""), "a.parquet: this is not a readable Parquet file; write it again"),
    ("parquet column", given("a.parquet", parquet(a=[1])), "a.parquet: there is no column 'not'; the columns are 'a'"),
    ("parquet null", given("a.parquet", parquet(a=[1.0, None], **{"not": [["cat"], ["dog"]]})), "a.parquet, row 1, column 'a': the cell is empty; fill it in, drop the row, or ignore the column"),
    ("parquet NaN", given("a.parquet", parquet(a=[1.0, float("nan")], **{"not": [["cat"], ["dog"]]})), "a.parquet, row 1, column 'a': the cell is empty; fill it in, drop the row, or ignore the column"),
    ("parquet text", given("a.parquet", parquet(a=pa.array(["x", "y"]).dictionary_encode(), **{"not": [["cat"], ["dog"]]})), "a.parquet, row 0, column 'a': 'x' is not a number; ignore the column (--ignore a), take its words (--text a), or turn it into numbers (2 rows: rows 0, 1)"),
    ("parquet date", given("a.parquet", parquet(a=pa.array([2**62, 0], pa.timestamp("us")), **{"not": [["cat"], ["dog"]]})), "a.parquet, row 0, column 'a': a cell of type timestamp[us] is not a number; ignore the column (--ignore a), take its words (--text a), or turn it into numbers (2 rows: rows 0, 1)"),
    ("parquet vector", given("a.parquet", parquet(a=[[1.0, 2.0]], **{"not": [["cat", "dog"]]})), "a.parquet, row 0, column 'a': '[1.0, 2.0]' is not a number; ignore the column (--ignore a), take its words (--text a), or turn it into numbers"),
    ("parquet names", given("a.parquet", parquet(a=[1, 2], **{"not": [0.5, 1.5]})), "a.parquet, column 'not': the column holds double; give class names or whole numbers"),
    ("parquet rows", given("a.parquet", parquet(a=pa.array([], pa.int8()), **{"not": pa.array([], pa.string())})), "a.parquet: the file has no rows; give at least one"),
    # NPZ
    ("npz broken", given("a.npz", b"PK nonsense"), "a.npz: this is not a readable NPZ file; write it again"),
    ("npz empty", given("a.npz", b""), "a.npz: this is not a readable NPZ file; write it again"),
    ("npz no x", given("a.npz", npz(X=x, **{"not": mask})), "a.npz: there is no column 'x'; did you mean 'X'?"),
    ("npz no sets", given("a.npz", npz(x=x)), "a.npz: there is no column 'not'; the columns are 'x'"),
    ("npz lying", given("a.npz", lying(), excluded=None), "a.npz: array 'x' is not of the size it claims; write it again"),
    ("npz pickle", given("a.npz", npz(x=np.array([[None, 1]], object)), excluded=None), "a.npz: array 'x' holds Python objects; save plain numbers or text"),
    ("npz text", given("a.npz", npz(x=np.array([["a"]])), excluded=None), "a.npz: array 'x' is of type <U1 and shape (1, 1); save numbers, one row or image per example"),
    ("npz complex", given("a.npz", npz(x=x * 1j), excluded=None), "a.npz: array 'x' is of type complex128 and shape (2, 3); save numbers, one row or image per example"),
    ("npz 1-D", given("a.npz", npz(x=np.ones(3)), excluded=None), "a.npz: array 'x' is of type float64 and shape (3,); save numbers, one row or image per example"),
    ("npz 5-D", given("a.npz", npz(x=np.ones((2, 1, 3, 3, 3))), excluded=None), "a.npz: array 'x' has shape (2, 1, 3, 3, 3); save (n, columns), (n, height, width), or images of 1, 3 or 4 channels"),
    ("npz channels", given("a.npz", npz(x=np.ones((2, 5, 6, 7))), excluded=None), "a.npz: array 'x' has shape (2, 5, 6, 7); save (n, columns), (n, height, width), or images of 1, 3 or 4 channels"),
    ("npz rows", given("a.npz", npz(x=np.ones((0, 3))), excluded=None), "a.npz: array 'x' has no rows; give at least one"),
    ("npz lengths", given("a.npz", npz(x=np.ones((3, 3)), **{"not": mask})), "a.npz: x has 3 rows and 'not' has 2; give one per row of x"),
    ("npz NaN", given("a.npz", npz(x=np.array([[1, 2], [3, np.nan]])), excluded=None), "a.npz, row 1, column 'x1': the value is nan; fill it in or drop the row"),
    ("npz huge", given("a.npz", npz(x=np.array([[1, 2], [3, 1e40]])), excluded=None), "a.npz, row 1, column 'x1': 1e+40 is too large for float32; scale the column"),
    ("npz no data", given("a.npz", npz(x=np.array([[1, 2], [3, -3.4028235e38]], "f")), excluded=None), "a.npz, row 1, column 'x1': -3.40282e+38 is too large for float32; scale the column"),
    ("npz value", given("a.npz", npz(x=x, **{"not": mask * 2})), "a.npz, row 0, column 0: 2 is neither 0 nor 1; 1 means ruled out, 0 means still a candidate"),
    ("npz label", given("a.npz", npz(x=x, y=np.array([0, 7]), classes=np.arange(3)), excluded=None, label="y"), "a.npz, row 1, column 'y': unknown class 7; the classes are 0, 1, 2"),
    ("npz one-hot label", given("a.npz", npz(x=x, y=mask), excluded=None, label="y", classes=3), "a.npz, row 1, column 'y': the row names 2 classes, not one; save 1 for the true class alone"),
    ("npz narrow label", given("a.npz", npz(x=x, y=mask), excluded=None, label="y", classes=4), "a.npz: array 'y' is 3 wide for 4 classes; save one label, or 0 and 1 for each class"),
    ("npz votes", given("a.npz", npz(x=x, L=mask * 2), excluded=None, votes="L"), "a.npz, row 0, column 0: 2 is not -1, 0 or 1; 1 means that it may be this class, -1 that it is not, 0 that nobody knows"),
    ("npz two votes", given("a.npz", npz(x=x, L=mask), excluded=None, votes=["L", "M"]), "a.npz: 2 arrays of votes are asked for; name one"),
    ("npz answers", given("a.npz", npz(x=x, **{"not": mask}), excluded=None, candidates="not", answer="a"), "a.npz: a .npz file has no columns of text; give a table instead"),
    ("votes and sets", given("a.csv", GOOD, votes=["a"]), "a.csv: votes and a column of sets are asked for; name one of the two"),
    ("votes", given("a.csv", "a,cat,dog\n1,-1,0\n2,3,1\n", excluded=None, votes=["cat", "dog"]), "a.csv, line 3, column 'cat': 3.0 is not -1, 0 or 1; 1 means that it may be this class, -1 that it is not, 0 that nobody knows; leave out columns that are not classes"),
    ("votes without", given("a.csv", "a,cat,dog\n1,-1,\n", excluded=None, votes=["cat", "dog"]), "a.csv, line 2, column 'dog': nan is not -1, 0 or 1; fill in or drop missing values"),
    ("votes against all", given("a.csv", "a,cat,dog\n1,-1,-1\n", excluded=None, votes=["cat", "dog"]), "a.csv, line 2: every class is ruled out; leave at least one class as a candidate"),
    ("votes for nothing", given("a.csv", "a,cat,dog\n1,0,0\n", excluded=None, votes=["cat", "dog"]), "a.csv, line 2: nothing is ruled out; rule out at least one class, drop the row, or pass unlabelled=True"),
    ("votes twice", given("a.csv", GOOD, excluded=None, votes=["a", "a"]), "a.csv: column 'a' is asked for twice; name two columns"),
    ("one vote", given("a.csv", "a,cat\n1,-1\n", excluded=None, votes="cat"), "a.csv: 1 class(es) given; at least two classes are needed"),
    ("answers about nothing", given("a.csv", GOOD, answer="a"), "a.csv: column 'a' is asked for as answers, but not what they are about; name its column with candidates=... (--candidates)"),
    ("answers", given("a.csv", "y,a\ncat,accept\ndog,maybe\n", excluded=None, candidates="y", answer="a", featureless=True), "a.csv, line 3, column 'a': unknown answer 'maybe'; use accept, reject or ignore"),
    ("answers without features", given("a.csv", "y,a,b\ncat,accept,1\n", excluded=None, candidates="y", answer="a"), "a.csv: no column is left as a feature; with answers, name --features, --text or --features-from"),
    ("answers ignored", given("a.csv", "y,a\ncat,ignore\n,accept\n", excluded=None, candidates="y", answer="a", featureless=True), "a.csv, column 'a': no row says anything; give some that accept or reject"),
    ("vote", given("a.csv", "a,cat,dog\n1,1,-1\n2,,yes\n", excluded=None, votes=["cat", "dog"]), "a.csv, line 3, column 'dog': 'yes' is not a vote; write 1 for the class, -1 against it, or 0"),
    ("npz names", given("a.npz", npz(x=x, features=np.array(["a"])), excluded=None), "a.npz: array 'features' is of type <U1 and shape (1,); save the names of the 3 columns of x"),
    ("npz feature", given("a.npz", npz(x=x), excluded=None, features=["x3"]), "a.npz: there is no column 'x3'; the columns are 'x0', 'x1', 'x2'"),
    ("npz too few", given("a.npz", npz(x=x), excluded=None, reading=columns), "a.npz: array 'x' has 3 columns without names; give the 2 that the model was trained on"),
    ("npz rows for images", given("a.npz", npz(x=x), excluded=None, reading=images), "a.npz: array 'x' holds rows, and images are wanted; save (n, height, width)"),
    ("npz images for rows", given("a.npz", npz(x=np.ones((2, 4, 4))), excluded=None, reading=columns), "a.npz: array 'x' holds images of shape (1, 4, 4); columns are wanted"),
    ("npz other images", given("a.npz", npz(x=np.ones((2, 5, 4))), excluded=None, reading=images), "a.npz: array 'x' holds images of shape (1, 5, 4); images of shape (1, 4, 4) are wanted"),
    ("npz ignored images", given("a.npz", npz(x=np.ones((2, 5, 4))), excluded=None, ignore=["x0"]), "a.npz: array 'x' holds images; images have no columns to choose from"),
    # written again
    ("draw type", redrawn("a,y\n1,cat\n2,dog\n", "b.xls"), "b.xls: unknown file type '.xls'; use one of .csv, .tsv, .parquet, .jsonl, .npz"),
    ("draw itself", redrawn("a,y\n1,cat\n2,dog\n", "./a.csv"), "a.csv: this file is to be read and written; give another name"),
    ("draw column", redrawn("a,y\n1,cat\n2,dog\n", "b.csv", label="z"), "a.csv: there is no column 'z'; the columns are 'a', 'y'"),
    ("draw twice", redrawn("excluded,y\n1,cat\n2,dog\n", "b.csv"), "a.csv: there is a column 'excluded' already; rename it, or use --sets-only"),
    ("draw dates", far, "column 'a': a cell of type timestamp[us] cannot be written as text; write .parquet instead"),
    ("draw text", redrawn("a,y\nx,cat\ny,dog\n", "b.npz"), "a.csv, line 2, column 'a': 'x' is not a number; ignore the column (--ignore a), take its words (--text a), or turn it into numbers (2 rows: lines 2, 3)"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "sentence"), [case[1:] for case in TABLE], ids=[case[0] for case in TABLE]
)
def test_bad_data_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[[], object], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value) == sentence


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".npz"])
def test_broken_bytes_never_give_another_error(suffix: str, tmp_path: Path) -> None:
    """Cut a good file anywhere, or change a byte: it reads or it raises InputError."""
    start = tmp_path / "start.csv"
    start.write_text("a,b,y\n" + '0.5,3,cat\n1.5,-2,"dog"\n2.5,1e3,fish\n' * 20)
    path = tmp_path / f"data{suffix}"
    draw_table(start, path, label="y")
    good, rng = path.read_bytes(), np.random.default_rng(0)
    for turn in range(300):
        bad = bytearray(good)
        if turn % 2:
            del bad[rng.integers(len(bad)) :]
        else:
            bad[rng.integers(len(bad))] = rng.integers(256)
        path.write_bytes(bytes(bad))
        try:
            read_table(path, excluded="excluded")
        except InputError as error:
            assert str(error).startswith(str(path))  # noqa: PT017  # reading well is right, too
            assert "\n" not in str(error)  # noqa: PT017


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the system says becomes a sentence; root may read anything, so it is made up here."""
    path = tmp_path / "a.csv"
    path.write_text(GOOD)

    def refuse(file: Path, *_: object, **__: object) -> bytes:
        raise PermissionError(13, "Permission denied", str(file))

    monkeypatch.setattr("ruleout.labels.row_files.open", refuse, raising=False)
    with pytest.raises(InputError) as caught:
        read_table(path, excluded="not")
    expected = f"{path}: the file cannot be read (Permission denied); check its permissions"
    assert str(caught.value) == expected


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_too_little_memory_is_not_called_a_bad_file(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"a{suffix}"
    content = {".csv": GOOD.encode(), ".parquet": parquet(a=[1, 2]), ".npz": npz(x=x)}[suffix]
    path.write_bytes(content)

    def full(*_: object, **__: object) -> Any:
        raise pa.ArrowMemoryError("malloc of size 16777344 failed")

    monkeypatch.setattr("ruleout.labels.row_files.memory_left", lambda: 20)  # Arrow would abort
    monkeypatch.setattr(pq.ParquetFile, "read", full)
    monkeypatch.setattr("ruleout.labels.files.npy.read_array", full)
    with pytest.raises(InputError) as caught:
        read_table(path)
    problem = "this machine has too little memory to read it; read a part of it"
    assert str(caught.value) == f"{path}: {problem}"


def test_a_table_larger_than_the_machine_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(parquet(a=np.zeros(1000), b=np.zeros(1000)))
    monkeypatch.setattr("os.sysconf", lambda name: 64 if name == "SC_PAGE_SIZE" else 100)
    with pytest.raises(
        InputError, match=r"1,000 × 2 numbers take 0.0 GB of memory, there are 0.0; read"
    ):
        read_table(path)
