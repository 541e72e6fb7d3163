"""The parameters of a transform: the text of the user's function.

The manifest keeps the text, so each driver runs the function that was planned, even if the file
changes. This module only reads the text; the driver of the job runs it.

Invariant: a kept text defines the function that is named.
"""

import ast
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from dss_core.errors import FunctionRefused

FUNCTION_BYTES_MAX = 32 << 10
"""How long the text of a transform's file may be: it is kept in the job's params, 64 KiB of
JSON."""


@dataclass(frozen=True, slots=True)
class TransformParams:
    """A function ``DataFrame -> DataFrame``."""

    function: str
    """Its name in the text."""
    text: str
    """The text of its file."""
    file: str
    """The file's path, for people."""

    @classmethod
    def of_file(cls, given: str) -> Self:
        """Read ``FILE.py:NAME``.

        Raises:
            FunctionRefused: there is no such function, or its file is too long.
        """
        path, colon, name = given.rpartition(":")
        if not (colon and path and name.isidentifier()):
            raise FunctionRefused(function=given, reason="it is written FILE.py:NAME")
        try:
            text = Path(path).read_text()
            defined = ast.parse(text, path).body
        except OSError as error:
            raise FunctionRefused(function=given, reason=f"{path}: {error.strerror}") from error
        except (SyntaxError, ValueError) as error:
            raise FunctionRefused(function=given, reason=f"{path} is no Python: {error}") from error
        if len(text.encode()) > FUNCTION_BYTES_MAX:
            reason = f"{path} has more than {FUNCTION_BYTES_MAX:,} bytes"
            raise FunctionRefused(function=given, reason=reason)
        if not any(isinstance(each, ast.FunctionDef) and each.name == name for each in defined):
            raise FunctionRefused(function=given, reason=f"{path} defines no function {name}")
        return cls(name, text, path)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote."""
        return cls(**json.loads(text))

    def to_json(self) -> str:
        """The parameters for the manifest."""
        return json.dumps(asdict(self))
