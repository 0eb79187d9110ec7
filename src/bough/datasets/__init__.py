"""Public datasets, made into files that bough reads."""
