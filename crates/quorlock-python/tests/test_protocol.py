"""The package follows the protocol's page: its conformance files, by calls of locks on a real server."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Callable

import conformance
import pytest
from servers import Server

README = Path(__file__).parents[1] / "README.md"


@pytest.mark.parametrize("only_scripts", [False, True], ids=["commands", "scripts"])
def test_the_conformance_files_that_are_calls_of_locks_pass(new_server: Callable[..., Server], only_scripts: bool) -> None:
    bench = conformance.Bench(new_server(), only_scripts)
    mapped, wrong = 0, list[str]()
    unmapped: Counter[str] = Counter()
    sequences = conformance.read()
    for file, sequence in sequences:
        try:
            trouble = conformance.run(bench, sequence)
        except conformance.Unmapped as why:
            unmapped[str(why)] += 1
            continue
        mapped += 1
        if trouble is not None:
            wrong.append(f"{file}: {sequence['name']}: {trouble}")
    bench.begin()
    bench.locks.close()
    print(f"{mapped} sequences ran, and {sum(unmapped.values())} are no calls of locks:")
    for reason, count in unmapped.most_common():
        print(f"{count:4} {reason}")
    assert not wrong, "\n".join(wrong)
    # The others have steps that no call of the package asks for: `pytest -s` prints why.
    assert f"Of the {len(sequences)} sequences of the protocol's conformance files, {mapped} consist of calls" in README.read_text()
