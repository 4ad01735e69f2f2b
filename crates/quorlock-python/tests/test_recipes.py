"""The page of the book about Python and the README, whose code is run: with Django and Celery, too."""

from __future__ import annotations

import asyncio
import gc
import importlib
import os
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any, Iterator

import pytest
from servers import Server, until

import quorlock

PAGE = Path(__file__).parents[3] / "docs/src/how-to/python.md"
README = Path(__file__).parents[1] / "README.md"


def blocks(kind: str, page: Path = PAGE) -> list[str]:
    """The blocks of code of a kind, in the order of the page."""
    return re.findall(rf"^```python{kind}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def of_server(code: str, server: Server) -> str:
    return code.replace("redis://127.0.0.1/", server.address)


def test_the_readme_runs(server: Server) -> None:
    page: dict[str, Any] = {}
    [code] = blocks("", README)
    exec(of_server(code, server), page)
    assert 0 < page["token"]
    page["locks"].close()


def test_the_page_runs(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    page: dict[str, Any] = {"__name__": "page"}
    for code in blocks(""):
        exec(of_server(code, server), page)
    assert capsys.readouterr().out.split() == ["0", "1", "2"]
    assert asyncio.run(page["ship"](server.address)) == "shipped"
    assert page["order"](7) == 200
    with page["locks"].lock("orders/7"):
        assert page["order"](7) == 409
    page["locks"].close()


def test_redis_lock_of_the_page_runs(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    [code] = blocks(" redis")
    exec(code, {"address": server.address})
    assert 0 < int(capsys.readouterr().out)


@pytest.mark.simulator
def test_simulations_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    [code] = blocks(" simulator")
    exec(code, {})
    assert "exclusion" in capsys.readouterr().out
    assert (tmp_path / "q5.png").read_bytes().startswith(b"\x89PNG")


def test_a_django_command_runs_once_per_tick(server: Server) -> None:
    # By their names, because Django has no types.
    settings: Any = importlib.import_module("django.conf").settings
    call_command: Any = importlib.import_module("django.core.management").call_command
    settings.configure(LOCKS=server.address)
    [code] = blocks(" django")
    page: dict[str, Any] = {"__name__": "page"}
    exec(code, page)

    def run() -> str:
        output = StringIO()
        call_command(page["Command"](stdout=output))
        return output.getvalue().strip()

    assert run() == "sends it"
    assert run() == "another machine sends it"
    assert quorlock.Locks.shared(server.address) is quorlock.Locks.shared(server.address)
    quorlock.Locks.shared(server.address).close()


@pytest.fixture
def worker(server: Server, tmp_path: Path) -> Iterator[Any]:
    """A worker of Celery whose processes are forked, and its application."""
    [code] = blocks(" celery")
    (tmp_path / "shop.py").write_text(code, encoding="utf-8")
    environment = {**os.environ, "LOCKS": server.address}
    command = [sys.executable, "-m", "celery", "-A", "shop", "worker", "--pool", "prefork", "--concurrency", "2", "-l", "error"]
    running = subprocess.Popen([*command, "--without-gossip", "--without-mingle"], cwd=tmp_path, env=environment)
    os.environ["LOCKS"] = server.address
    page: dict[str, Any] = {"__name__": "shop"}
    exec(code, page)
    yield page
    running.terminate()
    running.wait(timeout=30)
    # Its results unsubscribe when they are collected: now, and not when the server has ended.
    gc.collect()
    page["app"].close()
    del os.environ["LOCKS"]


def test_a_celery_task_does_not_overlap(worker: dict[str, Any], server: Server) -> None:
    rebuild = worker["rebuild"]
    both = [rebuild.delay("spring") for _ in range(2)]
    until(lambda: all(one.ready() for one in both), 60)
    assert sorted(one.get() for one in both) == ["rebuilt", "runs already"]
    both.append(rebuild.delay("spring"))
    assert both[-1].get(timeout=30) == "rebuilt"
    assert "rebuild/spring" not in server.keys()
