"""The labelling service over HTTP: pages for people, a small API for the page.

:func:`make_app` builds it and :func:`serve` runs it. Every request passes one gate
(:mod:`ruleout.web.service.gate`), and what its access table does not name is not there.
"""

from ruleout.web.service.options import Options
from ruleout.web.service.server import make_app, serve

__all__ = ["Options", "make_app", "serve"]
