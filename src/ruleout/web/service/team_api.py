"""The pages of leads: the team's numbers, invites, downloads."""

from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from starlette.responses import RedirectResponse, Response, StreamingResponse

from ruleout.labels.classes import storable
from ruleout.labels.errors import brief
from ruleout.web.entities import RefusedError, Role
from ruleout.web.names import suggest
from ruleout.web.service.gate import Call, json_response
from ruleout.web.service.images import pieces
from ruleout.web.service.options import Options
from ruleout.web.service.pages import Pages
from ruleout.web.service.problems import LOG, ProblemError, one_line
from ruleout.web.store import Store


class TeamApi:
    def __init__(self, store: Store, options: Options, pages: Pages) -> None:
        self._store, self._pages, self._now = store, pages, options.clock

    def page(self, call: Call, status: int = 200, **said: Any) -> Response:
        from ruleout.web.team.team_page import team_view  # late: it takes a moment to load

        view = team_view(self._store, self._now())
        more = {"invite": None, "invited": None, "problem": None, **said}
        return self._pages.page("team", call, "Team", status, view=view, **more)

    def invite(self, call: Call) -> Response:
        """Invite somebody and show the link, this once."""
        name, role = _name(call), call.form.get("role", "")
        if role not in ("annotator", "lead"):
            raise ProblemError("invalid", "there is no such role; choose annotator or lead")
        try:
            token = self._store.invite(name, cast(Role, role), now=self._now(), by=call.person)
        except RefusedError as error:
            return self._refused(call, error)
        _note(call, f"made an invite link ({role}) for", name)
        return self.page(call, invite=f"{call.origin}/join/{token}", invited=name)

    def disable(self, call: Call) -> Response:
        """Let somebody in no more, or again."""
        name, disabled = _name(call), call.form.get("disabled", "")
        if disabled not in ("0", "1"):
            raise ProblemError("invalid", "say 1 to close the account or 0 to open it")
        try:
            if disabled == "1" and self._store.user(name).id == call.person.id:
                raise RefusedError("this would lock you out", "ask another lead", reason="conflict")
            self._store.disable(name, disabled == "1", self._now(), by=call.person)
        except RefusedError as error:
            return self._refused(call, error)
        _note(call, f"{'closed' if disabled == '1' else 'opened'} the account of", name)
        return RedirectResponse("/team", 303)

    def decide(self, call: Call) -> Response:
        """Say what an item is, or which answers to leave out; with ``back``, neither any more."""
        form, item = call.form, _number(call.form.get("item", ""))
        voids = [_number(name[5:]) for name in form if name.startswith("void-")]
        name, classes = form.get("class", ""), self._store.settings.classes
        seen = _number(form["seen"]) if "seen" in form else None
        try:
            if "back" in form:
                name, voids = "", []
            elif name and name not in classes:
                raise RefusedError(
                    f"there is no class {brief(name)}",
                    suggest(name, classes, "choose one of the list"),
                )
            elif not name and not voids:
                remedy = "name the class, or tick answers that are wrong"
                raise RefusedError("nothing is decided", remedy)
            which = classes.index(name) if name else None
            now = self._now()
            self._store.decide(item, call.person, which=which, voids=voids, seen=seen, now=now)
        except RefusedError as error:
            return self._refused(call, error)
        _note(call, "decided about item", str(item))
        return RedirectResponse("/team#clashes", 303)

    def _refused(self, call: Call, error: RefusedError) -> Response:
        problem = ProblemError.of(error)
        return self.page(call, problem.status, problem=problem.sentence)

    def status(self, _: Call) -> Response:
        from ruleout.web.team.team_page import numbers  # late: it takes a moment to load

        wrong = int((numbers(self._store).candidates == 0).sum())
        return json_response({**asdict(self._store.progress()), "contradictions": wrong})

    def export(self, call: Call) -> Response:
        """Return a download, from a file that is gone once it was sent."""
        # late: pyarrow takes long to load
        from ruleout.web.project_export import DOWNLOADS, Export

        name = call.filled["name"]
        if name not in DOWNLOADS:
            names = ", ".join(DOWNLOADS)
            raise ProblemError("unknown", f"there is no such download; take one of {names}")
        how, write = DOWNLOADS[name]
        with TemporaryDirectory(prefix="ruleout-", ignore_cleanup_errors=True) as folder:
            path = Path(folder, name)
            write(Export(self._store, how), path)
            stream, size = path.open("rb"), path.stat().st_size
        shown = f'attachment; filename="{name}"'
        headers = {"Content-Disposition": shown, "Content-Length": str(size)}
        return StreamingResponse(pieces(stream, b"", size), 200, headers, "text/csv")


def _note(call: Call, did: str, whom: str) -> None:
    who, where = one_line(call.person.name), one_line(call.peer)
    LOG.info("%s from %s %s %s", who, where, did, one_line(whom))


def _number(text: str) -> int:
    """Return a number that a form sends; -1, which nothing has, for what is not one."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1


def _name(call: Call) -> str:
    name = call.form.get("name", "")
    if not storable(name):
        raise ProblemError("invalid", "the name cannot be kept; write it with letters alone")
    return name
