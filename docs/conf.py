"""Sphinx settings."""

import sys
from pathlib import Path
from typing import Any

from docutils import nodes

import bough

sys.path.insert(0, str(Path(__file__).parent))  # api_reference.py

project = "bough"
author = "the bough authors"
copyright = "2026, the bough authors"
version = release = bough.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # MathJax with its fonts, so that the site needs no network
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "api_reference",
]
exclude_patterns = ["_build", "**/*-table.md"]  # pages include the tables

myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence"]
myst_heading_anchors = 3
smartquotes = False  # `--data` keeps its two hyphens
default_role = "name"  # `Posterior` in a docstring links to it; what is no name of ours stays plain code

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autodoc_type_aliases = dict.fromkeys(("Floats", "Nodes", "Integers", "Names", "Flags"), "array")
python_use_unqualified_type_names = True
nitpicky = False

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

html_theme = "furo"
html_title = f"bough {release}"
html_static_path = ["_static"]
html_css_files = ["bough.css"]
html_favicon = "_static/favicon.svg"
html_show_sphinx = False


def without_last_lines(_app: Any, document: nodes.document) -> None:
    """Code blocks end with their last line: the empty one that ends a doctest is not shown."""
    for block in document.findall(nodes.literal_block):
        if block.rawsource == block.astext():  # it is highlighted
            block.rawsource = block.rawsource.rstrip()
            block.children = [nodes.Text(block.rawsource)]


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("doctree-read", without_last_lines)
