"""Code in a process of its own, with a cache of kernels of its own."""

import os
import subprocess
import sys


def in_a_new_process(code: str, cache: str) -> list[float]:
    """The numbers that the code prints, with kernels kept in the folder `cache`."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return [float(number) for number in done.stdout.split()]
