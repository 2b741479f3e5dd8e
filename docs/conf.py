"""Sphinx settings.

Before each build the table of approaches is written from the registry, the tables of times from
what the benchmarks recorded, and the gallery from the examples.
"""

import sys
from pathlib import Path

import ruleout as ro

sys.path.insert(0, str(Path(__file__).parent))
from gallery import write_gallery
from measured import write_measured
from table import write_table

project = "ruleout"
author = "the ruleout team"
copyright = "2026, the ruleout team"  # noqa: A001
version = release = ro.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "field_comments",
    "mathml",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
exclude_patterns = [
    "_build",
    "approaches-costs.md",
    "approaches-table.md",
    "engine-table.md",
    "gallery-examples.md",
    "labelling-study.md",
    "reproduction-notes.md",
]
copybutton_prompt_text = r">>> |\.\.\. |\$ "  # what is copied can be pasted
copybutton_prompt_is_regexp = True
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_title = f"ruleout {release}"

autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_member_order = "bysource"
napoleon_use_rtype = False
html_math_renderer = "mathml"

write_table(Path(__file__).parent / "approaches-table.md")
write_measured(Path(__file__).parent / "engine-table.md")
write_gallery(Path(__file__).parent / "gallery-examples.md")
