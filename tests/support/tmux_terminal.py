"""A real terminal, run by tmux: keys in, screen out.

Invariant: it has its own tmux server, which ends with the block; nothing is left behind.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from support.prerequisites import TMUX, leave_out

LOOK_AGAIN_S = 0.05
SEEN_S_MAX = 60.0


class TmuxTerminal:
    """A terminal with a program in it. Built by `terminal`."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._told = socket.with_name("exit-code")

    def _tmux(self, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
        command = ("tmux", "-f", "/dev/null", "-S", str(self._socket), *arguments)
        done = subprocess.run(command, capture_output=True, check=True, text=True, env=environment)
        return done.stdout

    def run(
        self, command: Sequence[str], size: tuple[int, int], environment: Mapping[str, str]
    ) -> None:
        """Run a program; its output stays on the screen after its end."""
        columns, lines = map(str, size)
        self._tmux(
            *("new-session", "-d", "-x", columns, "-y", lines),
            # A shell prints the exit code, because tmux now and then misses the end of its child.
            *("sh", "-c", '"$@"; echo $? >"$0"', str(self._told), *command),
            *(";", "set", "-g", "remain-on-exit", "on", ";", "set", "-s", "escape-time", "0"),
            environment=environment,
        )

    def keys(self, *keys: str) -> None:
        """Press keys, as tmux names them."""
        self._tmux("send-keys", *keys)

    def typed(self, text: str) -> None:
        """Type a text, all of it at once."""
        self._tmux("send-keys", "-l", text)

    @property
    def screen(self) -> str:
        """The text on the screen."""
        return self._tmux("capture-pane", "-p")

    @property
    def printed(self) -> str:
        """The screen, with what was scrolled out of it."""
        return self._tmux("capture-pane", "-p", "-S", "-")

    @property
    def exit_code(self) -> int | None:
        """Of the program, once it has ended."""
        told = self._told.read_text() if self._told.exists() else ""
        return int(told) if told.endswith("\n") else None

    def until(self, *texts: str, gone: str = "") -> str:
        """The screen, once all of these texts are on it, and none of those that should be gone."""
        last_at = time.monotonic() + SEEN_S_MAX
        while True:
            screen = self.screen
            if all(text in screen for text in texts) and not (gone and gone in screen):
                return screen
            assert time.monotonic() < last_at, f"{texts} are not to be seen:\n{screen}"
            time.sleep(LOOK_AGAIN_S)

    def wake(self) -> None:
        """Let the program continue after it has stopped itself, as `fg` of a shell does."""
        shell = self._tmux("display-message", "-p", "#{pane_pid}").strip()
        (program,) = Path(f"/proc/{shell}/task/{shell}/children").read_text().split()
        last_at = time.monotonic() + SEEN_S_MAX
        while (stat := Path(f"/proc/{program}/stat").read_text()).rpartition(") ")[2][0] != "T":
            assert time.monotonic() < last_at, f"it goes on: {stat}"
            time.sleep(LOOK_AGAIN_S)
        os.kill(int(program), signal.SIGCONT)

    def ended(self) -> int:
        """The exit code of the program."""
        last_at = time.monotonic() + SEEN_S_MAX
        while (code := self.exit_code) is None:
            assert time.monotonic() < last_at, f"it goes on:\n{self.screen}"
            time.sleep(LOOK_AGAIN_S)
        return code


@contextmanager
def terminal(folder: Path) -> Iterator[TmuxTerminal]:
    """A terminal; the test is skipped if there is no tmux."""
    if shutil.which("tmux") is None:
        leave_out(TMUX, "there is no tmux")
    folder.mkdir()
    found = TmuxTerminal(folder / "tmux")
    try:
        yield found
    finally:
        subprocess.run(
            ("tmux", "-S", str(folder / "tmux"), "kill-server"), capture_output=True, check=False
        )
