"""Compares rates with those of the book: compare.py RATES BOOK. Exits with 1 if the bounds of two do not meet."""

import json
import sys


def rates(path: str) -> dict:
    with open(path) as file:
        return {(row["deployment"], row["lock"]): row for row in map(json.loads, file)}


measured, book = map(rates, sys.argv[1:])
apart = 0
for name, known in book.items():
    found = measured.get(name)
    if found is None or found["upper"] < known["lower"] or known["upper"] < found["lower"]:
        apart += 1
        print(f"{', '.join(name)}: {found and (found['lower'], found['upper'])}, in the book {known['lower'], known['upper']}")
print(f"{len(book)} rates of the book, {apart} do not agree")
sys.exit(apart > 0)
