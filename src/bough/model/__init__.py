"""The kinds of reward; a new one is a file here, a line in `registry.py`, and its branch in the kernels."""
