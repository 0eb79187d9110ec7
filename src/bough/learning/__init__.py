"""Priors learned from data: by the evidence of a log, or from features."""
