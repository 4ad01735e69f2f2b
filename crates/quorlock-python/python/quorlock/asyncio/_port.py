"""How an event loop waits for operations of the library."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import quorlock._native as native


T = TypeVar("T")


class Port:
    """The operations that one event loop waits for.

    Their thread wakes the loop through a descriptor, without the interpreter. Results that arrive while the loop is busy share one
    wake-up.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._native = native.Port()
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._last_key = 0
        # The port must not refer to the loop, or neither would ever be freed.
        loop.add_reader(self._native.fileno(), self._deliver)

    async def run(self, loop: asyncio.AbstractEventLoop, call: native.Call[T]) -> T:
        """Runs an operation. If it is cancelled, so is the operation, and what it is granted all the same is released."""
        self._last_key += 1
        key = self._last_key
        future: asyncio.Future[T] = loop.create_future()
        self._waiting[key] = future
        try:
            call.start(self._native, key)
            return await future
        except BaseException:
            if self._waiting.pop(key, None) is not None:
                call.cancel()
            # The traceback refers to this frame, and may live for long. What was granted must not.
            del future
            raise

    def _deliver(self) -> None:
        waiting = self._waiting
        for key, succeeded, value in self._native.drain():
            future = waiting.pop(key, None)
            if future is None or future.done():
                continue
            if succeeded:
                future.set_result(value)
            else:
                future.set_exception(value)


_ports: WeakKeyDictionary[asyncio.AbstractEventLoop, Port] = WeakKeyDictionary()


async def run(call: native.Call[T]) -> T:
    """Runs an operation of the library on the running event loop."""
    loop = asyncio.get_running_loop()
    port = _ports.get(loop)
    if port is None:
        port = _ports[loop] = Port(loop)
    return await port.run(loop, call)
