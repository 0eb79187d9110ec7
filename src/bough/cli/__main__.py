"""`python -m bough.cli` is the command."""

import sys

from bough.cli import main

sys.exit(main())
