"""One image: PNG, JPEG, BMP, GIF (first frame) or WebP as bytes, upright, on white."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ruleout.datasets.errors import DataError

if TYPE_CHECKING:
    from PIL import Image

__all__ = ["ENDINGS", "Pixels", "decode_all"]

ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp")
Pixels = NDArray[np.uint8]  # [height, width] if grey, else [height, width, 3]

_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP")
_MOST = 1 << 26  # pixels of one image; a bomb claims more


def decode_all(
    files: list[Path], *, size: tuple[int, int] | None, grey: bool | None
) -> Generator[tuple[Pixels, bytes], None, None]:
    """Yield the pixels of each file and the sha256 of its bytes, in order.

    Parameters
    ----------
    size
        (height, width) to resize to, bilinear and stretched; None leaves images as they are.
    grey
        Whether all become grey or all colour; None leaves them as they are.
    """
    if find_spec("PIL") is None:
        raise DataError("reading images needs Pillow", "pip install pillow")
    one = partial(_decode, size=size, grey=grey)
    with _bombs_raise(), ThreadPoolExecutor() as pool:
        try:
            yield from pool.map(one, range(len(files)), files)
        finally:
            pool.shutdown(cancel_futures=True)


@contextmanager
def _bombs_raise() -> Iterator[None]:
    """Make Pillow's warning about too many pixels an error, in all threads."""
    from PIL import Image

    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        yield


def _decode(
    row: int, file: Path, *, size: tuple[int, int] | None, grey: bool | None
) -> tuple[Pixels, bytes]:
    from PIL import Image

    content = file.read_bytes()
    try:
        with Image.open(BytesIO(content), formats=_FORMATS) as image:
            if image.width * image.height > _MOST:
                raise Image.DecompressionBombError
            pixels = _pixels(image, size, grey)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise DataError(
            f"the image has more than {_MOST:,} pixels", "make it smaller", file=file, row=row
        ) from None
    except Exception:  # each format breaks in ways of its own
        raise DataError(
            "this is not a readable image",
            "save it again as PNG, JPEG, BMP, GIF or WebP",
            file=file,
            row=row,
        ) from None
    return pixels, hashlib.sha256(content).digest()


def _pixels(image: Image.Image, size: tuple[int, int] | None, grey: bool | None) -> Pixels:
    from PIL import Image, ImageOps

    plain = _plain(ImageOps.exif_transpose(image))
    if grey is not None:
        plain = plain.convert("L" if grey else "RGB")
    if size is not None and plain.size != size[::-1]:
        plain = plain.resize(size[::-1], Image.Resampling.BILINEAR)
    return np.array(plain, np.uint8)


def _plain(image: Image.Image) -> Image.Image:
    """Return mode L for images of greys, else RGB; what is transparent becomes white."""
    from PIL import Image

    if image.mode.startswith("I"):  # 16 bits per pixel
        bytes_ = np.clip(np.asarray(image, np.int64) // 257, 0, 255).astype(np.uint8)
        return Image.fromarray(bytes_)
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
