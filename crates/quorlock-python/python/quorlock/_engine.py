"""The engine of this process, from its first client until the interpreter exits."""

from __future__ import annotations

import atexit
import os
import threading
from typing import TYPE_CHECKING, Any, Callable, Optional

import quorlock._native as native

if TYPE_CHECKING:
    from .errors import Lost

_engine: Optional[Engine] = None
_starting = threading.Lock()


class Engine:
    """The thread that drives all clients, and the one that calls callbacks and writes log records."""

    def __init__(self) -> None:
        import logging

        self._port = native.Port()
        self.native = native.Engine(self._port)
        self._logger = logging.getLogger("quorlock")
        self._callbacks: dict[int, Callable[[Lost], object]] = {}
        self._last_key = 0
        self._adding = threading.Lock()
        self._thread = threading.Thread(target=self._deliver, name="quorlock-callbacks", daemon=True)
        self._thread.start()

    def follow_logger(self) -> None:
        """Records the events that Python's logger wants from now on."""
        self.native.set_level(self._logger.getEffectiveLevel())

    def when_lost(self, lost: native.Call[Optional[str]], callback: Callable[[Lost], object]) -> None:
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
        # Records and callbacks that have arrived are delivered, but a callback that blocks does not keep the interpreter.
        self._thread.join(timeout=1)

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
            callback, how = self._callbacks.pop(key), Lost(value)
            if how is not Lost.RELEASED:
                callback(how)


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


def _stop() -> None:
    if _engine is not None:
        _engine.stop()


def _forget() -> None:
    """In a child: the threads of the parent are not here, and its objects are not ours."""
    global _engine, _starting
    # Not reset, but replaced: a thread of the parent may have held the mutex.
    _engine, _starting = None, threading.Lock()
    native.set_main_thread(threading.get_ident())


native.set_main_thread(threading.main_thread().ident or 0)
atexit.register(_stop)
os.register_at_fork(after_in_child=_forget)
