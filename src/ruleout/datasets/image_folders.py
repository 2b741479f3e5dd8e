"""A folder of images, with a label file where labels are asked for."""

from __future__ import annotations

import hashlib
import math
import os
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ruleout.datasets.tables import FILE, FOLDER, WEIGHT, Request, Table, columns_of, labelled
from ruleout.labels.classes import shown
from ruleout.labels.errors import DataError, brief, counted
from ruleout.labels.row_files import check_memory, find_column, naming

if TYPE_CHECKING:
    from PIL import Image

    from ruleout.labels.files import Columns

ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp")
Pixels = NDArray[np.uint8]  # [height, width] if grey, else [height, width, 3]

_Attempt: TypeAlias = tuple[Pixels | DataError, bytes]  # with the hash of the file

_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP")
_MOST = 1 << 26  # pixels of one image; a bomb claims more
_RULES = {
    "resize": "bilinear, stretched",
    "alpha": "on white",
    "turned": "as EXIF says",
    "scale": "0 to 1",
}


def read_folder(folder: Path, ask: Request) -> Table:
    """Read the images that the label file names, or all of them."""
    if ask.ignore or ask.features or ask.text:
        raise DataError("this is a folder of images", "images have no columns to choose from")
    if ask.names is not None:
        raise DataError("this is a folder of images", "images are named by their files")
    if ask.skip_bad_rows and ask.files is None:
        raise DataError("this is a folder of images", "leave --skip-bad-rows out")
    size, grey = _repeated(ask)
    found, whole = _listed(folder), hashlib.sha256()
    held: dict[str, Any] = {}
    notes = list[str]()
    names = found if ask.files is None else list(ask.files)
    for name in ask.files or ():
        if not _inside(folder, name):
            raise DataError(f"there is no image {brief(name)} in the folder", "put it back")
    if ask.taken or ask.labels_file is not None:
        file = label_file(folder, ask)
        with naming(file):
            columns = columns_of(file, replace(ask, names=FILE), partial(_no_features, ask))
            names = _named(columns.cells[FILE], folder, found)
            held = labelled(columns, ask)
            notes += held.pop("notes")
            if ask.weight is None:
                held["weight"] = _weights(columns, file, notes)
        whole.update(b"" if file.is_dir() else file.read_bytes())
        if left := len(set(found) - set(names)):
            notes.append(f"{left} image(s) in the folder are not in {file.name}: left out.")
    if not names:
        raise DataError("the folder holds no images", f"their names end in {', '.join(ENDINGS)}")
    one = partial(_attempt, skip=ask.skip_bad_rows, size=size, grey=grey)
    x, shape, kept = _read(folder, names, one, whole)
    if left_out := sorted({*names} - {*kept}):
        what = counted(len(left_out), "image")
        notes.append(f"{what} cannot be read ({shown(left_out)}): left out.")
    return Table(
        x=x,
        shape=shape,
        features=(),
        row_names=tuple(kept),
        **held,
        source=folder,
        sha256=whole.hexdigest(),
        reading={"kind": "images", "shape": list(shape), **_RULES},
        notes=tuple(notes),
    )


def _repeated(ask: Request) -> tuple[tuple[int, int] | None, bool | None]:
    """Return the size and whether images become grey, as asked for or as in an earlier reading."""
    size, grey = ask.size, None
    if ask.reading is not None:
        if ask.reading.get("kind") != "images":
            problem = "this is a folder of images, and columns are wanted"
            raise DataError(problem, "give a table file")
        if ask.reading.get("scale") != "0 to 1":
            problem = "this is a folder of images, and arrays of another scale are wanted"
            raise DataError(problem, "give an NPZ file, scaled as the first one was")
        channels, height, width = ask.reading["shape"]
        if channels not in (1, 3) or size not in (None, (height, width)):
            problem = f"images of shape {(channels, height, width)} are wanted"
            raise DataError(problem, "leave size out")
        size, grey = (height, width), channels == 1
    if size is not None and not (len(size) == 2 and min(size) > 0 and math.prod(size) <= _MOST):
        remedy = f"give a height and a width above 0, together at most {_MOST:,} pixels"
        raise DataError(f"the size is {brief(size)}", remedy)
    return size, grey


def label_file(folder: Path, ask: Request) -> Path:
    """Return the file that labels images, or the folder itself where its folders do."""
    file = Path(os.path.expanduser(ask.labels_file or folder / "labels.csv"))
    file = ask.separated(file)
    if ask.labels_file is None and not file.is_file():
        if ask.taken == (FOLDER,):
            return folder
        if (folder / "project.json").is_file():
            raise DataError(
                "this is a labelling project, not a folder of images",
                "name no column with fit, evaluate and resolve; for other commands write its sets "
                "with `ruleout label export`",
            )
        problem = "the folder has no file labels.csv"
        raise DataError(problem, "name the label file with labels_file=... (--labels-file FILE)")
    return file


def class_folders(folder: Path, choosing: Callable[[list[str]], list[str]]) -> Columns:
    """Return the names of the images, and the folder that each lies in, as a label file would."""
    import pyarrow as pa

    from ruleout.labels.files import Cells, Columns

    columns = {FILE: _listed(folder)}
    for name in columns[FILE]:
        if "/" not in name:
            remedy = "move it into one, or give a label file (--labels-file FILE)"
            raise DataError(f"the image {brief(name)} lies in no class folder", remedy)
    columns[FOLDER] = [name.partition("/")[0] for name in columns[FILE]]
    chosen = pa.table({name: columns[name] for name in choosing(list(columns))})
    cells = {name: Cells(column) for name, column in columns.items()}
    return Columns(chosen, cells, None, len(columns[FILE]))


def _no_features(ask: Request, names: list[str]) -> list[str]:
    for name in (FILE, *ask.taken):
        find_column(name, names)
    if ask.weight is not None:
        return [ask.weight]
    return [WEIGHT] if WEIGHT in names and WEIGHT not in ask.held else []


def _weights(columns: Columns, file: Path, notes: list[str]) -> NDArray[np.float64] | None:
    """Return how likely each row is right, where the label file says so, as exports do."""
    if not columns.features.num_columns:
        return None
    found = columns.numbers(WEIGHT)
    if not ((found >= 0) & (found <= 1)).all() or not found.any():
        notes.append(f"The column {WEIGHT!r} of {file.name} is not used: not all are from 0 to 1.")
        return None
    low, high = found.min(), found.max()
    notes.append(f"Rows weigh {low:.2f} to {high:.2f} in fit, as {WEIGHT!r} of {file.name} says.")
    return found


def _listed(folder: Path) -> list[str]:
    found = []
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            if name.lower().endswith(ENDINGS) and not name.startswith("."):
                found.append(Path(place, name).relative_to(folder).as_posix())
    return sorted(found)


def _named(cells: Iterable[Any], folder: Path, found: list[str]) -> list[str]:
    """Return the images that the label file names, as paths below the folder."""
    known, names = set(found), []
    for row, cell in enumerate(cells):
        name = PurePosixPath(str(cell).replace("\\", "/")).as_posix()
        options = [name, f"images/{name}"]
        match = next((option for option in options if option in known), None)
        match = match or next((option for option in options if _inside(folder, option)), None)
        if match is None:
            problem = f"there is no image {brief(cell)} in {folder}"
            raise DataError(problem, "give names relative to that folder", row=row, column=FILE)
        names.append(match)
    return names


def _inside(folder: Path, name: str) -> bool:
    """Tell whether this is a file below the folder, whatever its name looks like."""
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and (folder / path).is_file()


def _read(
    folder: Path, names: list[str], one: Callable[[int, Path], _Attempt], whole: Any
) -> tuple[NDArray[np.float32], tuple[int, ...], list[str]]:
    """Decode all, put channels first, and scale to [0, 1]; also return which could be read."""
    if find_spec("PIL") is None:
        raise DataError("reading images needs Pillow", "pip install pillow")
    from PIL import Image

    images, kept = list[Pixels](), list[str]()
    files = [folder / name for name in names]
    with warnings.catch_warnings(), ThreadPoolExecutor() as pool:
        warnings.simplefilter("error", Image.DecompressionBombWarning)  # in all threads
        try:
            for file, name, (pixels, digest) in zip(
                files, names, pool.map(one, range(len(files)), files), strict=True
            ):
                if isinstance(pixels, DataError):
                    fault = pixels
                    continue
                if not images:
                    check_memory(len(names), pixels.size)
                elif pixels.shape[:2] != images[0].shape[:2]:
                    here, there = ("×".join(map(str, i.shape[:2])) for i in (pixels, images[0]))
                    problem = f"the image is {here} pixels high and wide, {kept[0]} is {there}"
                    remedy = f"give one size for all, as in --size {there.replace('×', 'x')}"
                    raise DataError(problem, remedy, file=file)
                whole.update(name.encode() + b"\0" + digest)
                images.append(pixels)
                kept.append(name)
        finally:
            pool.shutdown(cancel_futures=True)
    if not images:
        raise fault
    channels = 1 if all(pixels.ndim == 2 for pixels in images) else 3
    height, width = images[0].shape[:2]
    x = np.empty((len(images), channels, height, width), np.float32)
    for row, pixels in enumerate(images):
        x[row] = pixels if pixels.ndim == 2 else pixels.transpose(2, 0, 1)
    x /= np.float32(255)
    return x.reshape(len(images), -1), (channels, height, width), kept


def _attempt(row: int, file: Path, *, skip: bool, **options: Any) -> _Attempt:
    """Decode an image; return why that fails where such images are left out."""
    try:
        return _decode(row, file, **options)
    except DataError as error:
        if not skip:
            raise
        return error, b""


def _decode(
    row: int, file: Path, *, size: tuple[int, int] | None, grey: bool | None
) -> tuple[Pixels, bytes]:
    from PIL import Image, ImageOps

    content = file.read_bytes()
    try:
        with Image.open(BytesIO(content), formats=_FORMATS) as image:
            if image.width * image.height > _MOST:
                raise Image.DecompressionBombError
            plain = _plain(ImageOps.exif_transpose(image))
            if grey is not None:
                plain = plain.convert("L" if grey else "RGB")
            if size is not None and plain.size != size[::-1]:
                plain = plain.resize(size[::-1], Image.Resampling.BILINEAR)
            pixels = np.array(plain, np.uint8)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        problem = f"the image has more than {_MOST:,} pixels"
        raise DataError(problem, "make it smaller", file=file, row=row) from None
    except MemoryError:
        raise
    except Exception:  # each format breaks in ways of its own
        remedy = "save it again as PNG, JPEG, BMP, GIF or WebP"
        raise DataError("this is not a readable image", remedy, file=file, row=row) from None
    return pixels, hashlib.sha256(content).digest()


def _plain(image: Image.Image) -> Image.Image:
    """Return mode L for images of greys, else RGB; what is transparent becomes white."""
    from PIL import Image

    if image.mode.startswith("I"):  # 16 bits per pixel
        return Image.fromarray(np.clip(np.asarray(image, np.int64) // 257, 0, 255).astype(np.uint8))
    is_grey = image.mode in ("1", "L", "LA", "La")
    if image.has_transparency_data:
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, image.convert("RGBA"))
    if image.mode == "P" or is_grey:
        image = image.convert("RGB")
        red, green, blue = image.split()
        if is_grey or red.tobytes() == green.tobytes() == blue.tobytes():
            return red
    return image.convert("RGB")
