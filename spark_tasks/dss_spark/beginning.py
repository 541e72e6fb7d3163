"""The session that a driver was submitted with, begun while the driver loads what drives.

Spark needs a second for it, nearly all of it in the JVM.

Invariant: it is begun once, whoever asks. Nothing runs in it before somebody has it; a driver that
is refused its job ends, and the session with it.
"""

import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Beginning:
    """A session that is on its way."""

    def __init__(self) -> None:
        # A thread that loads modules meanwhile would wait for this one; Spark has to begin first.
        import pyspark.sql  # noqa: F401

        self._session: Future[SparkSession] = Future()
        # Whoever has no use for it any more does not wait for it.
        threading.Thread(target=self._begin, name="a session begins", daemon=True).start()

    def session(self) -> "SparkSession":
        """The session, once it is there.

        Raises:
            Exception: it does not begin.
        """
        return self._session.result()

    def _begin(self) -> None:
        from pyspark.sql import SparkSession

        try:
            session = SparkSession.builder.getOrCreate()
            session.sparkContext.setLogLevel("WARN")
        except BaseException as failed:  # noqa: BLE001 - whoever waits for it is told
            self._session.set_exception(failed)
        else:
            self._session.set_result(session)
