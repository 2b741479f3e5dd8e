"""Serves a project until killed: ``python serving.py URL PORT``."""

from __future__ import annotations

import sys
from pathlib import Path

from ruleout.web import Store
from ruleout.web.service import serve


def main(url: str, port: int) -> None:
    with Store.open(url) as store:
        serve(store, images=Path.cwd(), host="127.0.0.1", port=port)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
