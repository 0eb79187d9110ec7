"""The paper's experiments: what to sweep (`sweeps`), one runner, the claims, one report."""
