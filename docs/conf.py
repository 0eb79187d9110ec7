"""Sphinx settings."""

import bough

project = "bough"
author = "the bough authors"
copyright = "2026, the bough authors"
version = release = bough.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "sphinx.ext.viewcode"]
myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "none"
default_role = "code"
nitpicky = False
html_theme = "furo"
html_title = f"bough {release}"
exclude_patterns = ["_build", "*-table.md"]  # pages include the tables
