"""``ruleout label serve``: a real server, from the invite link to the export."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from cli.labelled import make_project, ran, run
from web.servers import Server

import ruleout as ro
from ruleout.web.project import Project

PASSWORD = "correct horse battery"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(project: Path, *options: object) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """Serve in a process of its own, and return what it has said once it is ready."""
    code = "from ruleout.cli import app; app()"
    words = [sys.executable, "-c", code, "label", "serve", str(project), *map(str, options)]
    process = subprocess.Popen(
        words,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    said: list[str] = []
    try:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line.rstrip("\n"))
            if "until Ctrl-C" in line:
                break
        yield process, said
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


@contextmanager
def joined(address: str, link: str) -> Iterator[httpx.Client]:
    """Choose a password behind an invite link, leave, and log in with it."""
    token = link.rsplit("/", 1)[1]
    with httpx.Client(base_url=address, timeout=20) as client:
        assert client.get(f"/join/{token}").status_code == 200
        form = {"token": token, "password": PASSWORD, "again": PASSWORD}
        assert client.post("/join", data=form).status_code == 303
        client.cookies.clear()
        assert client.get("/api/project").status_code == 401
        login = client.post("/login", data={"name": "Lea", "password": PASSWORD})
        assert login.status_code == 303
        yield client


def labelled(client: httpx.Client) -> int:
    """Answer "no" to everything; return how many answers were recorded."""
    page = client.get("/").text
    match = re.search(r'<meta name="csrf" content="([^"]+)"', page)
    assert match is not None, page
    client.headers["X-CSRF-Token"] = match[1]
    count = 0
    while questions := client.post("/api/next", json={"count": 1}).json()["questions"]:
        body = {"id": f"answer-{count:08}", "kind": "no", "question": questions[0]["id"], "hold": 0}
        reply = client.post("/api/answer", json=body)
        assert reply.status_code == 200, reply.text
        assert reply.json()["receipt"]["status"] == "recorded"
        count += 1
    return count


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> list[str]:
    """The options of ``init`` that say where the answers go."""
    if request.param == "sqlite":
        return []
    server: Server = request.getfixturevalue("postgresql")
    return ["--database", server.database()]


def test_from_the_link_to_the_export(database: list[str], tmp_path: Path) -> None:
    project = make_project(tmp_path, *database)
    with serving(project, "--port", free_port()) as (process, said):
        assert said[0] == "Lea, who leads, can choose a password (once, within seven days):"
        link, address = said[1].strip(), said[2].split()[4]
        with joined(address, link) as client:
            assert client.get("/api/project").json()["name"] == "project"
            assert labelled(client) == 6
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 0
    ran("export", project, "--out", tmp_path / "out")
    sets = ro.LabelSets.read(tmp_path / "out" / "sets.csv")
    assert len(sets) == 6
    with Project.open(project) as opened:
        asked = {row.item_name: len(row.proposed) for row in opened.store.log()}
    assert sets.sizes.tolist() == [asked[f"{n}.png"] for n in range(6)]
    assert "6 of 6 wanted" in ran("status", project)


def test_who_has_a_password_gets_no_link(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    with Project.open(project) as opened:
        token = opened.store.invite("Lea", "lead")
        opened.store.accept(token, "a hash")
    with serving(project, "--port", free_port()) as (_, said):
        assert len(said) == 1
        assert said[0].startswith("project is served at http://127.0.0.1:")


def test_a_port_in_use_is_one_sentence(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run("serve", project, "--port", port)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith(f"ruleout: cannot listen on '127.0.0.1' port {port} (")
    assert result.stderr.count("\n") == 1


def test_an_address_of_another_machine_is_one_sentence(tmp_path: Path) -> None:
    result = run("serve", make_project(tmp_path), "--host", "192.0.2.1", "--port", 0)
    assert result.exit_code == 1
    assert "give --host an address of this machine" in result.stderr.splitlines()[-1]


def test_serving_starts_soon_and_never_loads_torch(tmp_path: Path) -> None:
    """Processor time, since other programs may use the cores; it takes about a second."""
    project = make_project(tmp_path)
    code = """
import sys, time
began = time.process_time()
import ruleout.web.service
from ruleout.cli import app
def run(*_, ready, **__):
    ready("http://127.0.0.1:1")
ruleout.web.service.serve = run
try:
    app(["label", "serve", sys.argv[1]])
except SystemExit as end:
    assert not end.code, end.code
heavy = {"torch", "sklearn", "matplotlib", "pandas", "ruleout.losses", "ruleout.datasets"}
print(sorted(heavy & set(sys.modules)), time.process_time() - began)
"""
    words = [sys.executable, "-c", code, str(project)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    last = done.stdout.splitlines()[-1]
    assert last.startswith("[] ")
    assert float(last.split()[1]) < 4


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the service would have been started with."""
    found: dict[str, Any] = {}

    def serve(_: object, **options: Any) -> None:
        found.update(options)
        options["ready"](options["options"].origin or "http://here")

    monkeypatch.setattr("ruleout.web.service.serve", serve)
    return found


def test_every_option_reaches_the_service(tmp_path: Path, called: dict[str, Any]) -> None:
    project = make_project(tmp_path)
    options = ("--host", "0.0.0.0", "--port", 99, "--origin", "https://label.example.org/",
               "--behind-proxy", "--session-hours", 2)  # fmt: skip
    result = run("serve", project, *options)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "https://label.example.org/join/" in result.stdout
    assert (called["host"], called["port"]) == ("0.0.0.0", 99)
    assert called["images"] == tmp_path / "images"
    told = called["options"]
    assert (told.name, told.origin) == ("project", "https://label.example.org")
    assert (told.behind_proxy, told.session_hours) == (True, 2.0)


@pytest.mark.parametrize(
    ("options", "noted"),
    [
        ((), False),
        (("--host", "localhost"), False),
        (("--host", "::1"), False),
        (("--host", "0.0.0.0"), True),
        (("--host", "192.0.2.1"), True),
        (("--host", "0.0.0.0", "--behind-proxy"), False),
    ],
)
@pytest.mark.usefixtures("called")
def test_passwords_in_the_clear_are_noted(
    options: tuple[str, ...], noted: bool, tmp_path: Path
) -> None:
    result = run("serve", make_project(tmp_path), *options)
    assert result.exit_code == 0
    assert result.stderr.startswith("Note: passwords and answers can be read") == noted


@pytest.mark.usefixtures("called")
@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_an_address_that_nobody_can_type_is_noted(host: str, tmp_path: Path) -> None:
    project = make_project(tmp_path)
    note = "Note: links will not lead here from other machines; give --origin, what people type\n"
    assert note in run("serve", project, "--host", host).stderr
    assert note not in run("serve", project, "--host", host, "--origin", "http://me").stderr


@pytest.mark.usefixtures("called")
def test_nobody_who_leads_is_noted(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    run("users", project, "close", "Lea")
    result = run("serve", project)
    assert "Note: nobody leads this project" in result.stderr
    assert "/join/" not in result.stdout


def test_a_certificate_reaches_the_service(tmp_path: Path, called: dict[str, Any]) -> None:
    options = ("--host", "192.0.2.1", "--certificate", "c.pem", "--key", "k.pem")
    result = run("serve", make_project(tmp_path), *options)
    assert (result.exit_code, result.stderr) == (0, "")
    assert (called["certificate"], called["key"]) == (Path("c.pem"), Path("k.pem"))


def test_a_certificate_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "c.pem").write_text("nonsense")
    pem = ("--certificate", tmp_path / "c.pem", "--key", tmp_path / "c.pem")
    result = run("serve", make_project(tmp_path), "--port", 0, *pem)
    assert result.exit_code == 1
    assert result.stderr.startswith("ruleout: cannot speak https (")
    assert result.stderr.endswith("; give a certificate and its key as PEM files\n")


@pytest.mark.parametrize(
    "options",
    [("--certificate", "c.pem"), ("--port", 70000), ("--origin", "x"), ("--session-hours", 0)],
)
def test_usage_errors_leave_with_2(options: tuple[object, ...], tmp_path: Path) -> None:
    assert run("serve", make_project(tmp_path), *options).exit_code == 2


# ---------------------------------------------------------------------- PostgreSQL


def test_the_environment_goes_before_the_folder(
    postgresql: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = postgresql.database().replace("ruleout@", "ruleout:secret@")
    monkeypatch.setenv("RULEOUT_DATABASE", address)
    project = make_project(tmp_path)
    card = (project / "project.json").read_text()
    assert "postgresql+psycopg://ruleout@127.0.0.1" in card
    assert "secret" not in card
    assert not (project / "labels.sqlite").exists()
    assert "Lea" in ran("users", project)
    (tmp_path / "other").mkdir()
    monkeypatch.delenv("RULEOUT_DATABASE")
    other = make_project(tmp_path / "other")
    monkeypatch.setenv("RULEOUT_DATABASE", address)
    result = run("users", other)
    assert result.stderr == (
        f"ruleout: {other}: the database holds another project; check RULEOUT_DATABASE and "
        "project.json\n"
    )


def test_a_database_holds_one_project(postgresql: Server, tmp_path: Path) -> None:
    address = postgresql.database()
    make_project(tmp_path, "--database", address)
    items = tmp_path / "images"
    options = ("--items", items, "--classes", "a,b", "--database", address)
    result = run("init", tmp_path / "second", *options)
    assert result.exit_code == 1
    assert "holds a project already" in result.stderr
    assert not (tmp_path / "second").exists()
    assert "Lea" in ran("users", tmp_path / "project")


def test_a_full_disk_leaves_no_tables(
    postgresql: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    address = postgresql.database()
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", full)
        with pytest.raises(AssertionError, match="no space left on device"):
            make_project(tmp_path, "--database", address)
    assert [file.name for file in tmp_path.iterdir()] == ["images"]
    options = ("--items", tmp_path / "images", "--classes", "a,b", "--database", address)
    ran("init", tmp_path / "project", *options)
