"""`python -m prony`: the same as the `prony` command."""

import sys

from prony.cli.main import main

sys.exit(main())
