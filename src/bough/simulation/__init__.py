"""Simulations: problems, the worlds they make, and runs of policies in them."""
