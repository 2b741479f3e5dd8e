"""``ruleout label serve``: the page, for everybody who was invited."""

from __future__ import annotations

import ipaddress
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ruleout.cli.common import tell
from ruleout.cli.label.common import Place, join_link, labelling, parse_origin

if TYPE_CHECKING:
    from ruleout.web.project import Project

__all__ = ["serve"]

_READABLE = (
    "passwords and answers can be read on their way to other machines; give --certificate and "
    "--key, or let a proxy speak https and give --behind-proxy"
)


@labelling()
def serve(
    project: Place,
    host: Annotated[
        str,
        typer.Option(
            "--host", metavar="ADDRESS", help="Where to listen; 0.0.0.0 for other machines."
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            "--port", metavar="N", min=0, max=65535, help="Where to listen; 0 takes a free one."
        ),
    ] = 8765,
    origin: Annotated[
        str | None,
        typer.Option(
            "--origin",
            metavar="URL",
            help="What people type, where that differs, as in https://label.example.org.",
        ),
    ] = None,
    certificate: Annotated[
        Path | None,
        typer.Option("--certificate", metavar="FILE", help="For https: the certificate, PEM."),
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--key", metavar="FILE", help="For https: its key, PEM.")
    ] = None,
    behind_proxy: Annotated[
        bool,
        typer.Option(
            "--behind-proxy", help="A proxy on this machine speaks https and passes requests on."
        ),
    ] = False,
    session_hours: Annotated[
        float,
        typer.Option(
            "--session-hours",
            metavar="HOURS",
            min=0.1,
            max=720,
            help="A login ends after so long without a click.",
        ),
    ] = 12.0,
) -> None:
    """Serve the page of a project until Ctrl-C.

    Where nobody who leads has a password yet, a link is printed that lets them choose one.
    """
    if (certificate is None) != (key is None):
        raise typer.BadParameter("--certificate and --key go together")
    seen = None if origin is None else parse_origin(origin)
    from ruleout.web.project import Project  # late: it loads SQLAlchemy
    from ruleout.web.service import Options
    from ruleout.web.service import serve as run

    with Project.open(project) as opened:
        if not (behind_proxy or certificate or _loopback(host)):
            tell([_READABLE])
        if seen is None and host in ("0.0.0.0", "::"):
            tell(["links will not lead here from other machines; give --origin, what people type"])
        options = Options(
            name=opened.name, origin=seen, behind_proxy=behind_proxy, session_hours=session_hours
        )
        run(
            opened.store,
            images=opened.images,
            host=host,
            port=port,
            options=options,
            certificate=certificate,
            key=key,
            ready=lambda address: _greet(opened, address),
        )
    typer.echo("Ended.")


def _loopback(host: str) -> bool:
    """Tell whether only this machine can reach a host.

    >>> _loopback("127.0.0.1"), _loopback("localhost"), _loopback("0.0.0.0")
    (True, True, False)
    """
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host.lower() == "localhost"


def _greet(opened: Project, address: str) -> None:
    store = opened.store
    leads = [user for user in store.users() if user.role == "lead" and not user.disabled]
    if not leads:
        tell(["nobody leads this project; add somebody with `ruleout label users`, --role lead"])
    elif not any((store.password(user.name) or (None, None))[1] for user in leads):
        token = store.invite(leads[0].name, "lead")
        typer.echo(f"{leads[0].name}, who leads, can choose a password (once, within seven days):")
        typer.echo(f"  {join_link(token, address)}")
    typer.echo(f"{opened.name} is served at {address} until Ctrl-C.")
    sys.stdout.flush()  # somebody may wait for this line in a pipe
