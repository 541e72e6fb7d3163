"""How the parts of a client start tasks: by name, in the task group of the client."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

Spawn = Callable[[Coroutine[Any, Any, None], str], "asyncio.Task[None]"]
"""Takes what to run and its name."""
