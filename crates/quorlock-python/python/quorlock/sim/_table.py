"""Rows of a simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas
    import polars


class Table(list["dict[str, Any]"]):
    """Rows with the same columns. Times are in seconds of the simulation."""

    def to_polars(self) -> polars.DataFrame:
        """The rows as a frame of polars, which must be installed."""
        import polars

        return polars.DataFrame(list(self), infer_schema_length=None)

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a frame of pandas, which must be installed."""
        import pandas

        return pandas.DataFrame(list(self))
