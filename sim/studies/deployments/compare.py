"""Compares rates with those of the book: compare.py RATES BOOK. Exits with 1 if the bounds of two do not meet."""

import json
import sys


def rates(path: str) -> dict:
    with open(path) as file:
        return {(row["deployment"], row["lock"]): row for row in map(json.loads, file)}


measured, book = map(rates, sys.argv[1:])
apart = 0
for name, found in measured.items():
    known = book.get(name)
    if known is None:
        apart += 1
        print(f"{', '.join(name)}: not in the book")
    elif found["upper"] < known["lower"] or known["upper"] < found["lower"]:
        apart += 1
        print(f"{', '.join(name)}: {found['lower']:.3g} to {found['upper']:.3g}, in the book {known['lower']:.3g} to {known['upper']:.3g}")
print(f"{len(measured)} rates, {apart} do not agree with the book")
sys.exit(apart > 0 or not measured)
