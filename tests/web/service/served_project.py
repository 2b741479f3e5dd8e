"""Serves a project until it is told to stop: ``python served_project.py URL FOLDER``."""

from __future__ import annotations

import sys
from pathlib import Path

from ruleout.web import Store
from ruleout.web.service import serve

if __name__ == "__main__":
    with Store.open(sys.argv[1]) as store:
        serve(store, images=Path(sys.argv[2]), port=0, ready=lambda url: print(url, flush=True))
    print("stopped in order", flush=True)
