"""``python -m dssctl``."""

import sys

from dssctl.main import main

sys.exit(main())
