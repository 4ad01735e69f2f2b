"""The servers of the tests themselves."""

from __future__ import annotations

import socket
from typing import Callable

import pytest
import servers
from servers import FREE, Server, free_port


def test_a_port_that_another_process_took_in_the_meantime_is_left_to_it(
    new_server: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        offered = iter([port, free_port(), free_port(), port])
        monkeypatch.setattr(servers, "free_port", lambda: next(offered, None) or free_port())
        server = new_server("--cluster-enabled", "yes", "--cluster-port", FREE)
    assert port not in [server.port, *server.others]
    assert server.ask("ping").strip() == "PONG"
