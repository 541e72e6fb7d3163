"""The session that a driver was submitted with, started while the driver loads its modules.

Spark needs a second for it, nearly all of it in the JVM.

Invariant: it starts once, whoever asks for it. Nothing runs in it before somebody has it; if a
driver is refused its job, it ends, and the session with it.
"""

import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Beginning:
    """A session that is being started."""

    def __init__(self) -> None:
        # A thread that loads modules meanwhile would wait for this one, but Spark has to start
        # first.
        import pyspark.sql  # noqa: F401

        self._session: Future[SparkSession] = Future()
        # If nobody needs the session any more, nobody waits for it.
        threading.Thread(target=self._begin, name="a session begins", daemon=True).start()

    def session(self) -> "SparkSession":
        """The session, once it has started.

        Raises:
            Exception: it does not start.
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
