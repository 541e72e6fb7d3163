"""How the parts of a client start their tasks: in the task group of their client, named."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

Spawn = Callable[[Coroutine[Any, Any, None], str], "asyncio.Task[None]"]
"""Takes what to run and its name."""
