"""What is administered, from threads. Made by scripts/gen_sync.py (make docs).

Invariant: each method is that of the class of the same name in `dss_client`, awaited in the loop.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass
