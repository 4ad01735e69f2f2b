"""Simulations of locks under faults, as tables for notebooks: the program ``quorlock-sim``, run by Python.

.. code-block:: python

    from quorlock import sim

    study = sim.explore(range(1000), variant="published", faults="all")
    study.violated                       # {'exclusion': 31, ..}
    study.failures.to_polars()           # one row for each failure: seed, property, time, story
    sim.run(seed=14, variant="published").history.to_pandas()

The program is found on the ``PATH``, or by the environment variable ``QUORLOCK_SIM``. Options are those of its commands, with
underscores: ``quorlock-sim run --help``. A table is a list of dictionaries; polars and pandas are needed for their frames alone.
"""

from ._explore import Exploration, explore
from ._program import Options, SimulatorError
from ._run import Run, run
from ._table import Table

__all__ = ["Exploration", "Options", "Run", "SimulatorError", "Table", "explore", "run"]
