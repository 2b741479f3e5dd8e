"""The installed package, run from outside the source tree by `make wheel`."""

from __future__ import annotations

from importlib.metadata import entry_points, metadata, requires
from importlib.resources import files

import pytest

import ruleout as ro


def test_types_ship() -> None:
    assert files("ruleout").joinpath("py.typed").is_file()


def test_metadata() -> None:
    about = metadata("ruleout")
    assert about["Version"] == ro.__version__
    assert about["License-Expression"] == "Apache-2.0"
    assert {"plot", "images", "label", "postgres", "ray", "export", "dev"} == set(
        about.get_all("Provides-Extra", [])
    )
    assert any(line.startswith("torch") for line in requires("ruleout") or [])


def test_the_command_is_installed() -> None:
    (command,) = entry_points(group="console_scripts", name="ruleout")
    assert command.load() is not None


@pytest.mark.parametrize("name", ["log", "ga-after"])
def test_it_works(name: str) -> None:
    ro.testing.check_approach(name)


def test_the_numbers_of_the_paper_ship() -> None:
    assert len(ro.experiments.printed()) == 518


def test_the_page_of_a_report_ships() -> None:
    page = ro.report.render(ro.report.Report("What was installed"))
    assert "What was installed" in page
    assert page.rstrip().endswith("</html>")


@pytest.mark.parametrize(
    "file",
    [
        "web/pages/label.html",
        "web/pages/team.html",
        "web/static/label.js",
        "web/static/style.css",
        "web/migrations/step_0004.sql",
        "learning/study.csv",
        "training/fused_adam.cu",
        "training/mlp_backward.cu",
    ],
)
def test_files_that_are_no_modules_ship(file: str) -> None:
    assert files("ruleout").joinpath(file).is_file()
