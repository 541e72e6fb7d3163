"""What holds for every test.

Hypothesis runs the same examples each time, and says what to reproduce on failure. Ctrl-C works
in the programs that tests start, also where the tests run in the background: a shell starts
background jobs with the signal ignored, and programs inherit that.
"""

import signal

from hypothesis import settings

settings.register_profile("dss", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("dss")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
