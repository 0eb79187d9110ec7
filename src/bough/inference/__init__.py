"""Inference: what was observed, the messages derived from it, and what can be asked of them."""
