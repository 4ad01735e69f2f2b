"""The examples of the docstrings, and docstrings themselves."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
from types import ModuleType
from typing import Iterator

import pytest

import quorlock


def modules() -> Iterator[str]:
    yield "quorlock"
    for found in pkgutil.walk_packages(quorlock.__path__, "quorlock."):
        if not found.name.endswith("._native"):
            yield found.name


@pytest.mark.parametrize("module", sorted(modules()))
def test_examples_run(module: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(module))
    assert failed == 0


@pytest.mark.parametrize("module", ["quorlock", "quorlock.asyncio"])
def test_everything_public_has_a_docstring(module: str) -> None:
    public: ModuleType = importlib.import_module(module)
    silent: list[str] = []
    for name in public.__all__:
        item = getattr(public, name)
        if not inspect.isclass(item):
            continue
        members = [(name, item)] + [(f"{name}.{key}", value) for key, value in inspect.getmembers(item)]
        for path, member in members:
            last = path.rpartition(".")[2]
            is_own = inspect.isfunction(member) or inspect.isclass(member) or inspect.isdatadescriptor(member)
            if is_own and not last.startswith("_") and last != "args" and not inspect.getdoc(member):
                silent.append(path)
    assert silent == []
