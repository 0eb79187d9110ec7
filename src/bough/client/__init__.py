"""Clients of the decision service: `Client` and `AsyncClient`."""
