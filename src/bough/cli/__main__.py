"""`python -m bough.cli` is the command."""

import sys

from bough.cli.main import main

sys.exit(main())
