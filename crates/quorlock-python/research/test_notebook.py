"""The notebook with the figures of the book runs, and shows what the book says."""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parent / "figures.ipynb"
CHECK = """
book = {"one server": 0.0511, "Redlock as published, five servers": 0.00357}
for label, rate in book.items():
    assert rates[label].lower <= rate <= rates[label].upper, (label, rates[label])
assert rates["Quorlock, five servers"].rate == 0
ours = shares["Quorlock, majority"]
assert (ours.loc[["partitions", "client pauses", "restarts, amnesia", "steps"]] == 0).all(), ours
assert (shares["`SET NX`, `DEL`"] > 0).all()
assert not runs["published"].holds and runs["Quorlock"].holds
assert len(rows) == cells["runs"].sum() and results.is_complete
assert len(broken) == cells["violations"].sum()
# Every picture of the book, and each that does not depend on RUNS is the book's, byte for byte.
drawn = {f"diagrams/{name}.svg": picture for name, picture in diagrams.items()}
drawn |= {f"breaks/{name}.svg": picture for name, picture in breaks.items()}
drawn["scenarios/q5-published.svg"] = readme
for path, picture in drawn.items():
    assert picture == (BOOK / path).read_text(), path
studied = {f"studies/{name}-{kind}.svg": picture for name, study in studies.items() for kind, picture in study.pictures.items()}
assert all(picture.startswith("<svg") for picture in studied.values())
pages = [CHECKOUT / "README.md", *BOOK.rglob("*.md")]
linked = {(page.parent / link).resolve() for page in pages for link in re.findall(r"!\\[[^]]*\\]\\(([^)]+\\.svg)\\)", page.read_text())}
made = {(BOOK / path).resolve() for path in [*drawn, *studied]}
assert linked - made == {(BOOK / "choose.svg").resolve()}, linked - made
assert len(made & linked) == len(linked) - 1 == 20
assert sum(cell["broken"] for cell in studies["restarts"].cells if cell["lock"] == "Quorlock") == 0
if RUNS == 1000:
    # The first table of the page, whose commit is older: a run may end otherwise since then, but not many.
    lines = (CHECKOUT / "docs/src/matrix.md").read_text().replace("*", "").splitlines()
    begin = lines.index("|---|---:|---:|---:|---:|---:|") + 1
    page = [[float(share) for share in line.strip("| ").split(" | ")[1:]] for line in lines[begin : begin + len(CLASSES)]]
    assert abs(shares.to_numpy() - page).max() < 1, (shares, page)
    assert f"{rates['one server'].rate:.4f}" == "0.0511"
"""


def test_the_notebook_shows_what_the_book_says(tmp_path: Path) -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "clear the outputs of the notebook before you commit it"
    notebook.cells.append(nbformat.v4.new_code_cell(CHECK))
    os.environ.setdefault("QUORLOCK_NOTEBOOK_RUNS", "60")
    os.environ["QUORLOCK_CHECKOUT"] = str(Path(__file__).parents[3])
    client = NotebookClient(notebook, timeout=1800, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    kinds = [kind for cell in notebook.cells for out in cell.get("outputs", []) for kind in out.get("data", {})]
    # Those of matplotlib, and the pictures of the book. A study may have one that the book does not show.
    assert kinds.count("image/png") == 5 and 20 <= kinds.count("image/svg+xml")
