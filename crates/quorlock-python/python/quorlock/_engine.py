"""The engine of this process, from its first client until the interpreter exits."""

from __future__ import annotations

import atexit
import os
import threading
from typing import TYPE_CHECKING, Any, Callable, Optional

from . import _native

if TYPE_CHECKING:
    import logging

    from .errors import Lost

main_thread: int = threading.main_thread().ident or 0
"""The thread that Ctrl-C interrupts."""

_engine: Optional[Engine] = None
_starting = threading.Lock()


class Engine:
    """The thread that drives all clients, and the one that calls callbacks and writes log records."""

    def __init__(self) -> None:
        import logging

        self._port = _native.Port()
        self.native = _native.Engine(self._port)
        self._logger = logging.getLogger("quorlock")
        self._callbacks: dict[int, Callable[[Lost], object]] = {}
        self._last_key = 0
        self._adding = threading.Lock()
        self._thread = threading.Thread(target=self._deliver, name="quorlock-callbacks", daemon=True)
        self._thread.start()

    def follow_logger(self) -> None:
        """Records the events that Python's logger wants from now on."""
        self.native.set_level(self._logger.getEffectiveLevel())

    def when_lost(self, lost: _native.Call, callback: Callable[[Lost], object]) -> None:
        """Calls back when a lock is lost."""
        with self._adding:
            self._last_key += 1
            key = self._last_key
            self._callbacks[key] = callback
        lost.start(self._port, key)

    def stop(self) -> None:
        """Releases everything, and ends both threads."""
        self.native.stop()
        self._port.close()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _deliver(self) -> None:
        while self._port.wait():
            for key, _, value in self._port.drain():
                try:
                    self._handle(key, value)
                except Exception:
                    self._logger.exception("a callback raised an exception")

    def _handle(self, key: int, value: Any) -> None:
        from .errors import Lost

        if key == 0:
            level, message = value
            self._logger.log(level, "%s", message)
        else:
            self._callbacks.pop(key)(Lost(value))


def engine() -> Engine:
    """The engine of this process, which is started if there is none."""
    global _engine
    running = _engine
    if running is None:
        with _starting:
            running = _engine
            if running is None:
                running = _engine = Engine()
    running.follow_logger()
    return running


def run(call: _native.Call, into: Optional[Callable[[Any], Any]] = None) -> Any:
    """Runs an operation of the library, and waits for it without the interpreter."""
    return call.run(threading.get_ident() == main_thread, into)


def _stop() -> None:
    if _engine is not None:
        _engine.stop()


def _forget() -> None:
    """In a child: the threads of the parent are not here, and its objects are not ours."""
    global _engine, _starting, main_thread
    _engine, _starting, main_thread = None, threading.Lock(), threading.get_ident()


atexit.register(_stop)
os.register_at_fork(after_in_child=_forget)
