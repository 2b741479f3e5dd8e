# ruff: noqa: E501  # the sentences stand as users read them
"""MATLAB files of the field: what they hold, damaged ones, and real boards where they are."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse
from scipy.io import loadmat, savemat

from ruleout.datasets import DataError, fetch, inspect, load, read_table
from ruleout.datasets.archives import MatArchive
from ruleout.datasets.data_formats import BoardSet
from ruleout.datasets.registry import REGISTRY, board_file
from ruleout.labels.errors import InputError
from ruleout.labels.sets import LabelSets

if TYPE_CHECKING:
    from datasets.conftest import Serve

REAL = Path(os.environ.get("RULEOUT_REAL") or Path(__file__).parents[3] / "shared/data/real")
X = np.arange(12.0).reshape(4, 3) / 7
TRUE = np.array([0, 2, 1, 2])
SOME = np.eye(3)[TRUE]
SOME[0, 1] = SOME[3, 0] = 1
BOARD = {"data": X, "partial_target": SOME.T, "target": np.eye(3)[TRUE].T}


def mat(compressed: bool = False, **arrays: Any) -> bytes:
    out: Any = io.BytesIO()
    savemat(out, arrays, do_compression=compressed)
    return bytes(out.getvalue())


def put(folder: Path, content: bytes, name: str = "a.mat") -> Path:
    (folder / name).write_bytes(content)
    return folder / name


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csc_matrix, np.ndarray.astype])
def test_a_board_has_rows_candidates_and_labels(
    tmp_path: Path, kind: Any, compressed: bool
) -> None:
    """Dense or sparse, of doubles or bytes, compressed or not."""
    make = (lambda array: array.astype(np.uint8)) if kind is np.ndarray.astype else kind
    told = {name: make(array) for name, array in BOARD.items() if name != "data"}
    file = put(tmp_path, mat(compressed, data=X, **told))
    table = read_table(file, candidates="partial_target", label="target")
    assert_array_equal(table.x, X.astype(np.float32))
    assert table.sets == LabelSets.from_candidates(SOME)
    assert_array_equal(table.labels, TRUE)
    assert table.features == ("x0", "x1", "x2")


def test_tables_may_also_have_rows_first_and_labels_be_numbers(tmp_path: Path) -> None:
    file = put(tmp_path, mat(data=X, partial_target=SOME, y=TRUE.astype(float)))
    table = read_table(file, candidates="partial_target", label="y", classes=["a", "b", "c"])
    assert table.sets == LabelSets.from_candidates(SOME, ["a", "b", "c"])
    assert table.labels is not None
    assert table.labels.tolist() == ["a", "c", "b", "c"]


def test_known_classes_may_have_gaps(tmp_path: Path) -> None:
    gaps = BOARD["target"].copy()
    gaps[:, 1] = 0
    file = put(tmp_path, mat(**BOARD | {"known": gaps}))
    table = read_table(file, candidates="partial_target", known="known")
    assert table.known is not None
    assert table.known.tolist() == ["0", "", "1", "2"]


def test_sparse_rows_stay_sparse(tmp_path: Path) -> None:
    thin = sparse.csc_matrix(X * (X > 1))
    table = read_table(put(tmp_path, mat(**BOARD | {"data": thin})), candidates="partial_target")
    assert isinstance(table.x, sparse.csr_array)
    assert len(table) == 4
    assert table.x.dtype == np.float32
    assert_array_equal(table.part([2, 0]).x.toarray(), (X * (X > 1))[[2, 0]].astype(np.float32))


def test_what_check_finds_of_sparse_rows_is_what_it_finds_of_dense_ones() -> None:
    rng = np.random.default_rng(0)
    x: Any = sparse.random(300, 1200, 0.01, format="csr", dtype=np.float32, random_state=0)
    sets = LabelSets(rng.random((300, 4)) < [0.2, 0.3, 0.4, 0], unlabelled=True)
    assert inspect(sets, sparse.csr_array(x)).to_dicts() == inspect(sets, x.toarray()).to_dicts()


def test_votes_are_read(tmp_path: Path) -> None:
    votes = np.array([[-1, 0, 0], [0, 0, 1], [1, 1, 0], [0, -1, -1]], float)
    table = read_table(put(tmp_path, mat(data=X, L=votes.T)), votes="L")
    assert table.sets is not None
    assert table.sets.to_candidates() == [[1, 2], [2], [0, 1], [0]]


@given(
    st.data(), st.sampled_from(["f8", "f4", "i4", "u1", "i8", "?"]), st.booleans(), st.booleans()
)
@settings(max_examples=60)
def test_arrays_are_those_that_scipy_reads(data: Any, kind: str, thin: bool, packed: bool) -> None:
    shape = data.draw(st.tuples(st.integers(1, 5), st.integers(1, 5)))
    cells = st.lists(st.integers(0, 1), min_size=25, max_size=25)
    array: Any = np.array(data.draw(cells)[: shape[0] * shape[1]]).reshape(shape).astype(kind)
    array = sparse.csc_matrix(array.astype(float if kind != "?" else bool)) if thin else array
    content = mat(packed, data=array, more="text", cells=np.array([1, "a"], object))
    stream: Any = io.BytesIO(content)
    found, wanted = MatArchive(content).array("data"), loadmat(stream)["data"]
    assert found.dtype == wanted.dtype or kind == "?"
    found, wanted = (one.toarray() if thin else one for one in (found, wanted))
    assert_array_equal(found, wanted)


def swapped(content: bytes) -> bytes:
    """Return a small uncompressed file of one double matrix as a big-endian machine has it."""
    head, rest = content[:124], content[128:]
    words = b"".join(rest[at : at + 4][::-1] for at in range(0, 16, 4))  # two tags
    flags = rest[16:20][::-1] + rest[20:24][::-1]
    sizes = b"".join(rest[at : at + 4][::-1] for at in range(24, 40, 4))
    name = rest[40:44][::-1] + rest[44:48]
    tag = b"".join(rest[at : at + 4][::-1] for at in range(48, 56, 4))
    values = b"".join(rest[at : at + 8][::-1] for at in range(56, len(rest), 8))
    return head + b"\1\0MI" + words + flags + sizes + name + tag + values


def test_bytes_may_be_in_the_other_order() -> None:
    assert_array_equal(MatArchive(swapped(mat(data=X))).array("data"), X)


def edited(**changes: Any) -> bytes:
    return mat(**{name: one for name, one in (BOARD | changes).items() if one is not None})


def claimed() -> bytes:
    """A file whose matrix claims a terabyte."""
    return mat(**BOARD).replace(b"\3\0\0\0\4\0\0\0", b"\0\0\0\x40\0\0\0\x40", 1)


def beyond() -> bytes:
    """A sparse matrix whose first place lies outside."""
    content = mat(data=X, partial_target=sparse.csc_matrix(SOME.T))
    at = content.index(b"partial_target") + 16 + 8
    return content[:at] + b"\0\0\0\x70" + content[at + 4 :]


BAD = [
    ("empty", b"", "this is not a readable .mat file of version 5 to 7; write it again"),
    ("text", b"a,b\n" * 99, "this is not a readable .mat file of version 5 to 7; write it again"),
    ("cut", mat(**BOARD)[:-9], "this is not a readable .mat file of version 5 to 7; write it again"),
    ("header alone", mat(**BOARD)[:128], "there is no column 'partial_target'; the file has none"),
    ("7.3", b"MATLAB 7.3 MAT-file".ljust(124) + b"\0\2IM", "this is a MATLAB file of version 7.3, which is HDF5; save it with -v7, or with scipy.io.savemat"),
    ("no data", edited(data=None), "there is no column 'data'; the columns are 'partial_target', 'target'"),
    ("no sets", edited(partial_target=None), "there is no column 'partial_target'; did you mean 'target'?"),
    ("cells", edited(data=np.array([[1, "a"]], object)), "array 'data' does not hold plain numbers; save plain numbers"),
    ("struct", edited(partial_target={"a": 1}), "array 'partial_target' does not hold plain numbers; save plain numbers"),
    ("complex", edited(data=X * 1j), "array 'data' does not hold plain numbers; save plain numbers"),
    ("words", edited(data=np.array(["abc", "abd"])), "array 'data' does not hold plain numbers; save plain numbers"),
    ("lengths", edited(partial_target=SOME.T[:, :2]), "data has 4 rows and 'partial_target' has 2; give one per row of data"),
    ("rows", edited(data=X[:0], partial_target=SOME.T[:, :0], target=SOME.T[:, :0]), "array 'data' has no rows; give at least one"),
    ("NaN", edited(data=X * [[1], [np.nan], [1], [1]]), "row 1, column 'x0': the value is nan; fill it in or drop the row"),
    ("sparse NaN", edited(data=sparse.csc_matrix(X * [[1], [np.inf], [1], [1]])), "row 1, column 'x0': the value is inf; fill it in or drop the row"),
    ("one class", edited(partial_target=np.ones((1, 4))), "array 'partial_target' has shape (4,); save a table with a cell for each row and class"),
    ("half", edited(partial_target=SOME.T / 2), "row 0, column 0: 0.5 is neither 0 nor 1; 1 means still a candidate, 0 means ruled out"),
    ("set NaN", edited(partial_target=SOME.T * np.nan), "row 0, column 0: nan is neither 0 nor 1; fill in or drop missing values"),
    ("no candidate", edited(partial_target=SOME.T * [1, 0, 1, 0]), "row 1: every class is ruled out; leave at least one class as a candidate (2 rows: rows 1, 3)"),
    ("all candidates", edited(partial_target=np.ones((3, 4))), "row 0: nothing is ruled out; rule out at least one class, drop the row, or pass unlabelled=True (4 rows: rows 0, 1, 2, 3)"),
    ("two truths", edited(target=SOME.T), "row 0, column 'target': the row names 2 classes, not one; save 1 for the true class alone (2 rows: rows 0, 3)"),
    ("no truth", edited(target=SOME.T * 0), "row 0, column 'target': the row names 0 classes, not one; save 1 for the true class alone (4 rows: rows 0, 1, 2, 3)"),
    ("odd truth", edited(target=SOME.T * 3), "array 'target' holds more than 0 and 1; save 1 for the true class"),
    ("claims", claimed(), "array 'partial_target' is not of the size it claims; write it again"),
    ("beyond", beyond(), "this is not a readable .mat file of version 5 to 7; write it again"),
    ("twice", mat(**BOARD) + mat(data=X)[128:], "column 'data' appears twice; name each column once"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "sentence"), [row[1:] for row in BAD], ids=[row[0] for row in BAD]
)
def test_bad_files_are_one_sentence(tmp_path: Path, content: bytes, sentence: str) -> None:
    file = put(tmp_path, content)
    with pytest.raises(InputError) as caught:
        read_table(file, candidates="partial_target", label="target")
    where = ", " if sentence.startswith("row ") else ": "
    assert str(caught.value) == f"{file}{where}{sentence}"


SEEDS = [
    mat(packed, data=rows, partial_target=make(SOME.T), target=make(BOARD["target"]))
    for packed in (False, True)
    for make in (np.asarray, sparse.csc_matrix)
    for rows in (X, sparse.csc_matrix(X))
]


@given(
    st.sampled_from(SEEDS),
    st.lists(st.tuples(st.integers(0, 1300), st.binary(min_size=1, max_size=4)), max_size=4),
    st.integers(0, 1300),
)
@settings(max_examples=400)
def test_no_damage_ends_in_anything_else(
    tmp_path_factory: Any, content: bytes, edits: list[tuple[int, bytes]], cut: int
) -> None:
    """SciPy's reader ends the process on some of these."""
    damaged = bytearray(content)
    for at, piece in edits:
        damaged[at : at + len(piece)] = piece
    file = put(tmp_path_factory.getbasetemp(), bytes(damaged[: len(damaged) - max(0, cut - 900)]))
    try:
        table = read_table(file, candidates="partial_target", label="target")
    except InputError:
        return
    assert len(table) > 0


# ---------------------------------------------------------------------- boards by name


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Put a small board in the place of Lost."""

    def register(content: bytes, **changes: Any) -> None:
        entry = REGISTRY["lost"]
        assert isinstance(entry, BoardSet)
        told = {"sha256": hashlib.sha256(content).hexdigest(), "shape": X.shape} | changes
        monkeypatch.setitem(
            REGISTRY, "lost", replace(entry, file=replace(entry.file, **told), many=3)
        )

    return register


def lay(root: Path, content: bytes) -> Path:
    (root / "boards").mkdir()
    return put(root / "boards", content, "lost.mat")


def test_a_board_by_name_has_sets_and_labels(tmp_path: Path, tiny: Callable[..., None]) -> None:
    tiny(mat(**BOARD))
    file = lay(tmp_path, mat(**BOARD))
    data = load("lost", tmp_path)
    assert (
        repr(data) == "Dataset('lost', 4 rows of shape (3,), 3 classes, label sets, no test rows)"
    )
    assert data.sets == LabelSets.from_candidates(SOME)
    assert data.y_train.tolist() == TRUE.tolist()
    assert "academic use" in data.source
    assert fetch("lost", tmp_path).files == (file,)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"sha256": "0" * 64}, "the content has sha256 "),
        ({"shape": (5, 3), "sha256": ""}, "rows, features and classes are 4 × 3 × 3 instead of 5 × 3 × 3"),
        ({"most": 100}, "the file has more than 100 bytes"),
    ],
)  # fmt: skip
def test_another_file_is_refused(
    tmp_path: Path, tiny: Callable[..., None], changes: Any, sentence: str
) -> None:
    tiny(mat(**BOARD), **changes)
    lay(tmp_path, mat(**BOARD))
    with pytest.raises(DataError) as caught:
        load("lost", tmp_path)
    assert caught.value.problem.startswith(sentence)


def test_only_boards_have_a_file_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny: Callable[..., None]
) -> None:
    monkeypatch.setenv("RULEOUT_DATA", str(tmp_path))
    tiny(mat(**BOARD))
    file = lay(tmp_path, mat(**BOARD))
    assert board_file("lost") == file
    assert board_file("mnist") is None
    assert board_file("no such name") is None


def test_a_board_is_downloaded(tmp_path: Path, tiny: Callable[..., None], serve: Serve) -> None:
    tiny(mat(**BOARD))
    server = serve(lambda _: mat(**BOARD))
    assert load("lost", tmp_path).sets == LabelSets.from_candidates(SOME)
    assert [file.name for file in fetch("lost", tmp_path).files] == ["lost.mat"]
    assert len(server.asked) == 1


FACTS = {"lost": (2.23, 1.0), "BirdSong": (2.18, 1.0), "italian": (1.60, 1.0)}


@pytest.mark.parametrize("name", FACTS)
def test_real_boards_are_as_published(tmp_path: Path, name: str) -> None:
    file = REAL / f"{name}.mat"
    if not file.is_file():
        pytest.skip(f"{file} is missing: set RULEOUT_REAL to a folder with the real boards")
    (tmp_path / "boards").mkdir()
    (tmp_path / "boards" / file.name).symlink_to(file)
    data = load(name.lower(), tmp_path)
    assert data.sets is not None
    left, wanted = data.sets.candidates, loadmat(file)
    right = left[np.arange(len(left)), data.y_train].mean()
    assert (round(left.sum(1).mean(), 2), right) == FACTS[name]
    some: Any = wanted["partial_target"]
    assert_array_equal(left, (some.toarray() if hasattr(some, "toarray") else some).T == 1)
    assert_array_equal(data.x_train, wanted["data"].astype(np.float32))


def test_known_classes_are_numbers_or_nothing(tmp_path: Path) -> None:
    """-1, NaN and a row of zeros say that nobody knows."""
    one_hot = np.eye(3)[TRUE]
    one_hot[1] = 0
    for some in (np.array([0, -1, 1, 2]), np.array([0, np.nan, 1, 2]), one_hot.T):
        file = put(tmp_path, mat(**BOARD, some=some))
        table = read_table(file, candidates="partial_target", known="some")
        assert table.known is not None
        assert table.known.tolist() == ["0", "", "1", "2"]
        assert table.truth() is not None
        assert_array_equal(table.truth(), [0, -1, 1, 2])
        arrays = {"x": X, "out": 1 - SOME, "some": some if some.ndim == 1 else some.T}
        np.savez(tmp_path / "a.npz", **arrays)
        told = read_table(tmp_path / "a.npz", excluded="out", known="some")
        assert_array_equal(told.truth(), [0, -1, 1, 2])


def test_labels_that_count_from_one_are_named(tmp_path: Path) -> None:
    arrays = {"data": X, "partial_target": SOME.T, "one": TRUE + 1, "few": [1, 2, 2, 1]}
    file = put(tmp_path, mat(**arrays))
    for name in ("label", "known"):
        told: Any = {"candidates": "partial_target", name: "one"}
        with pytest.raises(DataError) as caught:
            read_table(file, **told)
        said = "array 'one' counts classes from 1, and they are 0, 1, 2; subtract 1, or save 0 and 1 for each class"
        assert str(caught.value) == f"{file}: {said}"
    notes = read_table(file, candidates="partial_target", label="few").notes
    assert notes[0].startswith("Array 'few' holds no 0, the first of the classes 0, 1, 2: if it")
    assert read_table(put(tmp_path, mat(**BOARD)), label="target").notes == ()


def test_columns_without_names_must_be_as_many(tmp_path: Path) -> None:
    """Of more, the first would be taken for those that trained a model."""
    file = put(tmp_path, mat(**BOARD))
    reading = read_table(file).reading
    for other in (np.hstack([X, X]), X[:, :2], X.T):
        wide = put(tmp_path, mat(data=other), "b.mat")
        with pytest.raises(DataError, match="columns without names; give the 3 that the model"):
            read_table(wide, reading=reading)
    np.savez(tmp_path / "a.npz", x=X)
    some = read_table(tmp_path / "a.npz", features=["x2", "x0"]).reading
    assert_array_equal(read_table(tmp_path / "a.npz", reading=some).x, X[:, [2, 0]].astype("f"))
    np.savez(tmp_path / "b.npz", x=X[:, [2, 0]])  # as they were asked for
    assert_array_equal(read_table(tmp_path / "b.npz", reading=some).x, X[:, [2, 0]].astype("f"))


def test_groups_may_be_called_minus_one(tmp_path: Path) -> None:
    """Only of true classes does -1 say that nobody knows."""
    np.savez(tmp_path / "a.npz", x=X, out=1 - SOME, some=[0, -1, 1, 2], of=[-1, -1, 0, 0])
    table = read_table(tmp_path / "a.npz", excluded="out", known="some", group="of", item="of")
    assert table.groups is not None
    assert table.groups.tolist() == [0, 0, 1, 1]
    assert table.items is not None
    assert table.items.tolist() == ["-1", "-1", "0", "0"]
