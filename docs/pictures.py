"""Pictures of the docs, small enough for a checkout."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path


def write_small(picture: bytes, file: Path) -> None:
    """Write a picture with few colours, a fifth of its size."""
    from PIL import Image

    few = Image.open(BytesIO(picture)).convert("RGB").quantize(128, dither=Image.Dither.NONE)
    few.save(file, optimize=True)
