"""Pages from templates: everything that is put into them is escaped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse

from ruleout.web.service.calls import Call

__all__ = ["FOLDER", "Pages"]

#: Where the templates are.
FOLDER = Path(__file__).parent.parent / "pages"


class Pages:
    """Renders the pages of one project."""

    def __init__(self, project: str, folder: Path = FOLDER) -> None:
        self._project = project
        self._templates = Environment(
            loader=FileSystemLoader(folder),
            autoescape=True,
            undefined=StrictUndefined,
            auto_reload=False,
        )

    def page(
        self, template: str, call: Call | None, title: str, status: int = 200, **more: Any
    ) -> HTMLResponse:
        """Return a page."""
        context = {
            "title": title,
            "project": self._project,
            "user": None if call is None else call.user,
            "csrf": None if call is None else call.csrf,
            **more,
        }
        text = self._templates.get_template(f"{template}.html").render(context)
        return HTMLResponse(text.encode("utf-8", "replace"), status)

    def message(
        self, call: Call | None, heading: str, text: str, status: int = 200
    ) -> HTMLResponse:
        """Return a page that says one thing."""
        return self.page("message", call, heading, status, heading=heading, text=text)
