"""Simulations of locks under faults, as tables for notebooks: the program ``quorlock-sim``, run by Python.

.. code-block:: python

    from quorlock import sim

    found = sim.explore(range(1000), variant="published", faults="all")
    found.violated                       # {'exclusion': 31, ..}
    found.failures.to_polars()           # one row for each failure: seed, property, time, story
    run = sim.run(seed=14, variant="published")
    run.history.to_pandas()
    sim.plot.timeline(run)               # who held the lock when, drawn by matplotlib
    sim.why("Q5", case="published").necessary        # the faults and messages without which it would have held
    sim.study("drift.toml").cells.to_pandas()        # how often each lock breaks where, with bounds, and .pictures
    sim.rate("deployment.toml").rate     # how often the lock breaks in a year, with bounds
    sim.read_results("results").rows     # one row for each run of a command with --results

The program is found on the ``PATH``, or by the environment variable ``QUORLOCK_SIM``. Options are those of its commands, with
underscores: ``quorlock-sim run --help``. `command` runs any other command of it. A table is a list of dictionaries; polars and pandas are
needed for their frames alone, matplotlib for plots, and zstandard for results (before Python 3.14): ``pip install quorlock[research]``.
"""

from ._explore import Exploration, explore, seconds
from ._picture import Picture, report
from ._program import Options, SimulatorError, command
from ._rate import Rate, rate
from ._results import Results, read_results
from ._run import Run, run
from ._study import Study, study
from ._table import Table
from ._why import Why, why
from . import plot

__all__ = [
    "Exploration",
    "Options",
    "Picture",
    "Rate",
    "Results",
    "Run",
    "SimulatorError",
    "Study",
    "Table",
    "Why",
    "command",
    "explore",
    "plot",
    "rate",
    "read_results",
    "report",
    "run",
    "seconds",
    "study",
    "why",
]
