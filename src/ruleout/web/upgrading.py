"""Makes the tables of a project, brings older ones up to date, refuses newer and foreign ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect

from ruleout.web.engines import Database
from ruleout.web.errors import StoreError

__all__ = ["TABLE", "climb", "make", "revision", "upgrade"]

#: Holds the revision; its name tells our databases from others.
TABLE = "ruleout_revision"


def make(database: Database, connection: Connection) -> None:
    """Make the tables in an empty database."""
    database.alone(connection)
    tables = inspect(connection).get_table_names()
    if TABLE in tables:
        raise StoreError(
            f"{database.name} holds a project already", "open it, or give another name"
        )
    if tables:
        raise StoreError(
            f"{database.name} holds other tables (such as {min(tables)!r})",
            "give the project a database of its own",
        )
    climb(connection)


def upgrade(database: Database, connection: Connection) -> None:
    """Bring the tables up to date; refuse a database that is newer, or not a project."""
    if _current(database, connection) == _scripts().get_current_head():
        return
    database.alone(connection)
    if _current(database, connection) != _scripts().get_current_head():
        climb(connection)


def revision(connection: Connection) -> str | None:
    """Return the revision of the tables; None where there are none of ours."""
    context = MigrationContext.configure(connection, opts={"version_table": TABLE})
    return context.get_current_revision()


def _current(database: Database, connection: Connection) -> str:
    found = revision(connection)
    if found is None:
        raise StoreError(
            f"{database.name} is not a labelling project", "make one with `ruleout label init`"
        )
    if found not in {script.revision for script in _scripts().walk_revisions()}:
        raise StoreError(
            f"{database.name} was made by a newer ruleout (revision {found[:20]})", "update ruleout"
        )
    return found


def _settings() -> Config:
    config = Config()
    folder = str(Path(__file__).parent / "migrations")
    config.set_main_option("path_separator", "os")
    config.set_main_option("script_location", folder.replace("%", "%%"))
    return config


def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(_settings())


def climb(connection: Connection, to: str = "head") -> None:
    """Run the missing steps in the transaction of `connection`."""
    config = _settings()
    scripts = ScriptDirectory.from_config(config)

    def steps(found: Any, _: object) -> Any:
        return scripts._upgrade_revs(to, found)  # as alembic's own upgrade command does

    with EnvironmentContext(config, scripts, fn=steps) as environment:
        environment.configure(connection=connection, version_table=TABLE)
        environment.run_migrations()
