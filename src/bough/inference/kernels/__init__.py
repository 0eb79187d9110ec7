"""Compiled code. This file stays empty: every kernel is compiled again when it changes."""
