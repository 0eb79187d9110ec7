"""Policies: what decides and learns."""
