"""Models: a prior on a tree, and how rewards come about."""
