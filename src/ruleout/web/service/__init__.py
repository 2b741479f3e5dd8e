"""The labelling service over HTTP: pages for people, a small API for the page.

:func:`make_app` builds it and :func:`serve` runs it. Every request passes one gate
(:mod:`ruleout.web.service.gate`), and what the table of :mod:`ruleout.web.service.access` does
not name is refused for everybody.
"""

from ruleout.web.service.app import make_app
from ruleout.web.service.options import Options
from ruleout.web.service.running import serve

__all__ = ["Options", "make_app", "serve"]
