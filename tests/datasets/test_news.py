"""20 newsgroups: documents from an archive, and features that are kept but never trusted."""

from __future__ import annotations

import gzip
import json
import lzma
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from ruleout.datasets import DataError, data_formats, load
from ruleout.datasets.data_formats import Documents, cached_features, read_documents

if TYPE_CHECKING:
    from datasets.conftest import Serve, TinyNews

KEPT = "tfidf-svd-2.safetensors"


class Counter:
    """Counts how often features are made."""

    def __init__(self) -> None:
        self.count = 0

    def make(self, texts: list[str], dimensions: int) -> NDArray[np.float32]:
        """Return rows that show the first text."""
        self.count += 1
        return np.full((len(texts), dimensions), len(texts[0]), np.float32)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Counter:
    counter = Counter()
    monkeypatch.setattr(data_formats, "make_features", counter.make)
    return counter


# ---------------------------------------------------------------------- documents


def test_documents_come_in_the_order_of_their_paths(news: TinyNews, tmp_path: Path) -> None:
    found = read_documents(news.put(tmp_path), news.entry)
    paths = sorted(path.split("/") for path in news.documents)
    assert found.labels == [path[1] for path in paths]
    assert found.texts[2] == "a dog ran"  # early/dogs/12 before early/dogs/2
    assert found.texts[3] == "a dog and a dog in the park é"  # Latin-1


def test_order_packing_and_name_change_nothing(news: TinyNews, tmp_path: Path) -> None:
    file = news.put(tmp_path)
    first = read_documents(file, news.entry)
    turned = dict(reversed(news.documents.items()))
    assert read_documents(news.put(tmp_path, turned), news.entry) == first
    content = gzip.decompress(file.read_bytes())
    file.write_bytes(lzma.compress(content))
    assert read_documents(file, news.entry) == first
    file.write_bytes(content)
    assert read_documents(file, news.entry) == first
    another = news.documents | {"early/cats/1": b"a cat and a mat\r"}
    assert read_documents(news.put(tmp_path, another), news.entry).sha256 != first.sha256


@pytest.mark.parametrize("name", ["20news-bydate.tar.xz", "20news-bydate.tar"])
def test_other_names_are_found(news: TinyNews, tmp_path: Path, name: str) -> None:
    file = news.put(tmp_path)
    expected = load("20newsgroups", tmp_path)
    file.rename(file.with_name(name))
    assert np.array_equal(load("20newsgroups", tmp_path).x_train, expected.x_train)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"early/cats/3": b""}, "early has 5 documents instead of 4"),
        ({"late/cats/10": None}, "late has 1 documents instead of 2"),
        ({"late/dogs/9": None, "late/cats/9": b""}, "late has no documents of dogs"),
        ({"early/cows/3": b""}, "member 'early/cows/3' is not part/newsgroup/document"),
        ({"noon/cats/3": b""}, "member 'noon/cats/3' is not part/newsgroup/document"),
        ({"readme": b""}, "member 'readme' is not part/newsgroup/document"),
        ({"early/cats/a/b": b""}, "member 'early/cats/a/b' is not part/newsgroup/document"),
        (
            {"early/cats/3": bytes((1 << 20) + 1)},
            "member 'early/cats/3' has a size of 1,048,577 instead of at most 1,048,576",
        ),
        (
            {f"early/cats/{count}": b"" for count in range(20_001)},
            "the archive has more than 20,000 members",
        ),
    ],
)
def test_another_structure_is_refused(
    news: TinyNews, tmp_path: Path, change: dict[str, bytes | None], problem: str
) -> None:
    documents = news.documents | change
    file = news.put(tmp_path, {path: text for path, text in documents.items() if text is not None})
    with pytest.raises(DataError) as caught:
        load("20newsgroups", tmp_path)
    assert str(caught.value) == f"{file}: {problem}; delete it and load again"


def test_an_absent_archive_is_downloaded(news: TinyNews, tmp_path: Path, serve: Serve) -> None:
    content = news.put(tmp_path / "elsewhere").read_bytes()
    server = serve(lambda _: content)
    for _ in range(2):
        assert len(load("20newsgroups", tmp_path).y_train) == 6
    assert server.asked == ["https://example.org/20news-bydate.tar.gz"]


def test_a_wrong_download_is_thrown_away(news: TinyNews, tmp_path: Path, serve: Serve) -> None:
    content = news.put(tmp_path / "elsewhere", {"late/cats/10": b""}).read_bytes()
    serve(lambda _: content)
    with pytest.raises(DataError, match=r"arrived is wrong: early has 0 documents instead of 4\)"):
        load("20newsgroups", tmp_path)
    assert list((tmp_path / "20newsgroups").iterdir()) == []


# ---------------------------------------------------------------------- features


def test_features_are_tf_idf_in_few_dimensions(news: TinyNews, tmp_path: Path) -> None:
    news.put(tmp_path)
    data = load("20newsgroups", tmp_path)
    assert repr(data) == "Dataset('20newsgroups', 6 rows of shape (2,), 2 classes, no test rows)"
    assert (data.x_train.dtype.name, data.y_train.dtype.name) == ("float32", "int64")
    assert data.y_train.tolist() == [0, 0, 1, 1, 0, 1]
    norms = np.linalg.norm(data.x_train, axis=1)
    assert norms.max() <= 1.001  # rows of tf-idf have length 1, their projections less
    sha256 = read_documents(news.put(tmp_path), news.entry).sha256
    assert data.source.endswith(f"; 6 documents of sha256 {sha256[:12]}….")


def test_features_are_those_of_an_exact_svd() -> None:
    """Where words are few, randomised and exact agree up to the sign."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{word}" for word in rng.integers(0, 9, 12)) for _ in range(60)]
    rows = data_formats.make_features(texts, 3)
    u, s, _ = np.linalg.svd(TfidfVectorizer().fit_transform(texts).toarray(), full_matrices=False)
    assert np.allclose(np.abs(rows), np.abs(u[:, :3] * s[:3]), atol=1e-4)
    assert np.array_equal(rows, data_formats.make_features(texts, 3))


def test_features_are_made_once(news: TinyNews, tmp_path: Path, made: Counter) -> None:
    file = news.put(tmp_path)
    first, second = load("20newsgroups", tmp_path), load("20newsgroups", tmp_path)
    assert made.count == 1
    assert np.array_equal(first.x_train, second.x_train)
    assert {path.name for path in file.parent.iterdir()} == {file.name, KEPT}


def test_another_text_recipe_or_version_makes_them_again(
    news: TinyNews, tmp_path: Path, made: Counter, monkeypatch: pytest.MonkeyPatch
) -> None:
    news.put(tmp_path)
    load("20newsgroups", tmp_path)
    news.put(tmp_path, news.documents | {"early/cats/1": b"a cat and a mat."})
    load("20newsgroups", tmp_path)
    assert made.count == 2
    monkeypatch.setattr(data_formats, "version", lambda _: "99.0")
    load("20newsgroups", tmp_path)
    assert made.count == 3
    load("20newsgroups", tmp_path)
    assert made.count == 3
    for name in ("seed", "iterations", "method"):
        before = made.count
        monkeypatch.setitem(data_formats.RECIPE, name, 7)
        load("20newsgroups", tmp_path)
        assert made.count == before + 1


def test_a_cache_is_known_by_all_it_was_made_of(
    news: TinyNews, tmp_path: Path, made: Counter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Word for word: caches of before are still found."""
    monkeypatch.setattr(data_formats, "version", lambda _: "1.7.2")
    kept = news.put(tmp_path).with_name(KEPT)
    load("20newsgroups", tmp_path)
    assert made.count == 1
    sha256 = read_documents(news.put(tmp_path), news.entry).sha256
    key = (
        f'{{"dimensions": 2, "documents": "{sha256}", "iterations": 5, '
        '"method": "tf-idf, randomised SVD in float32", "scikit-learn": "1.7.2", "seed": 0}'
    )
    assert json.dumps(key)[1:-1].encode() in kept.read_bytes()


def test_a_damaged_cache_is_made_again(news: TinyNews, tmp_path: Path, made: Counter) -> None:
    """Cut it anywhere, or change any byte of it: the features are those of the documents."""
    kept = news.put(tmp_path).with_name(KEPT)
    expected = load("20newsgroups", tmp_path).x_train
    good, rng, damaged = kept.read_bytes(), np.random.default_rng(0), 0
    for turn in range(120):
        bad = bytearray(good)
        if turn % 2:
            del bad[rng.integers(len(bad)) :]
        else:
            bad[rng.integers(len(bad))] ^= rng.integers(1, 256)
        kept.write_bytes(bad)
        before = made.count
        assert np.array_equal(load("20newsgroups", tmp_path).x_train, expected)
        damaged += made.count > before
        if made.count > before:
            assert np.array_equal(load_file(kept)["rows"], expected)
    assert damaged >= 115  # all but names in the header that nothing reads


@pytest.mark.parametrize(
    "rows",
    [
        np.ones((6, 2), np.float64),
        np.ones((2, 6), np.float32),
        np.ones((7, 2), np.float32),
        np.ones(12, np.float32),
        np.ones((6, 2), np.float32),  # the right form, another sum
    ],
)
def test_a_foreign_cache_is_made_again(
    news: TinyNews, tmp_path: Path, made: Counter, rows: NDArray[np.float32]
) -> None:
    kept = news.put(tmp_path).with_name(KEPT)
    expected = load("20newsgroups", tmp_path).x_train
    header = kept.read_bytes()
    size = int.from_bytes(header[:8], "little")
    about = json.loads(header[8 : 8 + size])["__metadata__"]
    save_file({"rows": rows}, kept, metadata=about)
    assert np.array_equal(load("20newsgroups", tmp_path).x_train, expected)
    save_file({"others": expected}, kept, metadata=about)
    assert np.array_equal(load("20newsgroups", tmp_path).x_train, expected)
    save_file({"rows": expected}, kept)
    assert np.array_equal(load("20newsgroups", tmp_path).x_train, expected)
    assert made.count == 4
    assert np.array_equal(load_file(kept)["rows"], expected)


def test_a_cache_of_gigabytes_is_not_read(news: TinyNews, tmp_path: Path, made: Counter) -> None:
    kept = news.put(tmp_path).with_name(KEPT)
    with open(kept, "wb") as out:
        out.truncate(1 << 40)
    load("20newsgroups", tmp_path)
    assert made.count == 1
    assert kept.stat().st_size < 1 << 12


@pytest.mark.usefixtures("made")
def test_a_folder_that_cannot_be_written_is_no_error(
    news: TinyNews, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = news.put(tmp_path)

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(data_formats, "atomic_write", refuse)
    assert load("20newsgroups", tmp_path).x_train.shape == (6, 2)
    assert [path.name for path in file.parent.iterdir()] == [file.name]


@pytest.mark.usefixtures("made")
def test_reading_features_loads_neither_torch_nor_scikit_learn(tmp_path: Path) -> None:
    """The rows of a cache are had in a moment."""
    documents = Documents(["a"] * 6, [], "abc")
    cached_features(documents, 2, tmp_path)
    code = f"""
import sys
from pathlib import Path
from ruleout.datasets.data_formats import Documents, cached_features
x = cached_features(Documents({documents.texts}, [], "abc"), 2, Path({str(tmp_path)!r}))
print(x.sum(), sorted({{"torch", "sklearn", "scipy"}} & set(sys.modules)))"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "12.0 []"
