"""Changing the configuration file.

Invariant: comments and order stay; the file is replaced in one step, is readable only for its
owner, and never contains something that could not be read again.
"""

import os
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from dss_core.errors import IllegalConfig
from dssctl.config.document import Configuration, config_path, configuration_of
from dssctl.config.keys import spelt

Document = MutableMapping[str, Any]


def edit_configuration(change: Callable[[Document], None]) -> Configuration:
    """Change the file; returns its new contents.

    Raises:
        IllegalConfig: it cannot be read or written, or would contain something that no
        configuration has.
    """
    import tomlkit  # only here: it takes 30 ms

    path = config_path()
    try:
        before = path.read_bytes() if path.exists() else b""
        configuration_of(path, before)
        document = tomlkit.parse(before.decode())
        change(document)
        after = tomlkit.dumps(document).encode()
        configuration = configuration_of(path, after)
        if after != before:
            _require_regular(path)
            _replace(path.resolve(), after)
    except OSError as failed:
        raise IllegalConfig(source=path, reason=failed.strerror) from failed
    return configuration


def table_of(document: Document, *names: str) -> Document:
    """A table inside the document, created if it does not exist."""
    import tomlkit

    found = document
    for name in names:
        if name not in found:
            # Tables of tables have no header of their own.
            found[name] = tomlkit.table(is_super_table=name in {"contexts", "defaults"})
        found = found[name]
    return found


def take_out(table: Document, name: str) -> bool:
    """Remove a key, however it is spelt; returns whether it was there."""
    spellings = [each for each in table if spelt(each) == name]
    for each in spellings:
        del table[each]
    return bool(spellings)


def _require_regular(path: Path) -> None:
    """Replacing a device such as /dev/null would take it from the whole machine.

    Raises:
        IllegalConfig: something else than a file stands there.
    """
    if path.exists() and not path.is_file():
        raise IllegalConfig(source=path, reason="it is no regular file, so it is not changed")


def _replace(path: Path, content: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=path.parent, prefix=".config-", delete=False) as file:
        try:
            os.fchmod(file.fileno(), 0o600)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            Path(file.name).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(file.name).unlink()
            raise
