"""The paper's experiments, and those beyond it: one module for each, one registry, one runner, one report."""
