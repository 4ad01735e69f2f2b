#!/usr/bin/env python3
"""Reads histories of quorlock-sim and judges them: read.py FILE... 

A history is a header and then one JSON object a line (docs/src/simulator.md, "Histories for other checkers"). For each file
one line is printed: its name and three words, each "ok" or "broken":

  overlaps   two holds that exclude each other were believed at once
  fencing    two holds have one token, a hold that was asked for after another was won has the smaller one, or the store took
             a smaller token after a larger one
  terms      a leader that was elected later has the smaller term

It needs Python 3.8 and nothing else.
"""

import json
import sys
from collections import defaultdict


def read(path):
    """The header of a history, and its lines."""
    with open(path, encoding="utf-8") as file:
        header, *lines = map(json.loads, file)
    if header["format"] != "quorlock-history" or header["format_version"] != 2:
        raise ValueError(f"{path}: this reads quorlock-history 2, not {header['format']} {header['format_version']}")
    return header, lines


def of(lines, *operations):
    """The successful lines of these operations, each with its one name."""
    for line in lines:
        if line["operation"] in operations and line["outcome"] == "ok":
            yield line["names"][0], line


def together(one, other):
    """Whether two holds of one name may exist at the same time."""
    return (
        one["hold"] == other["hold"]
        or (one["access"] == "read" and other["access"] == "read")
        or (one["access"] == "read" and one["under"] == other["hold"])
        or (other["access"] == "read" and other["under"] == one["hold"])
    )


def overlaps(lines):
    inside = defaultdict(list)
    for name, use in of(lines, "use", "lead"):
        # Lines come in the order of `invoke`: those that ended before this one can meet no later one either.
        place = inside[name, use["operation"], use["access"] == "alone"]
        place[:] = [other for other in place if use["invoke"] < other["complete"]]
        if not all(together(use, other) for other in place):
            return True
        place.append(use)
    return False


def fencing(lines):
    grants, largest_stored = defaultdict(list), defaultdict(int)
    for name, line in of(lines, "grant"):
        if line["access"] != "read":
            grants[name].append(line)
    for name, line in of(lines, "store"):
        if line["token"] is not None:
            if line["token"] < largest_stored[name]:
                return True
            largest_stored[name] = line["token"]
    for own in grants.values():
        if len({grant["token"] for grant in own}) < len(own):
            return True
        # In the order of tokens: no later one may have been won before an earlier one was requested.
        own.sort(key=lambda grant: grant["token"])
        asked = 0
        for grant in own:
            if grant["complete"] < asked:
                return True
            asked = max(asked, grant["invoke"])
    return False


def terms(lines):
    last = {}
    for name, term in of(lines, "lead"):
        if name in last and term["token"] <= last[name]:
            return True
        last[name] = term["token"]
    return False


def main(paths):
    if not paths or paths[0].startswith("-"):
        print(__doc__)
        return 64
    for path in paths:
        _, lines = read(path)
        words = ("broken" if check(lines) else "ok" for check in (overlaps, fencing, terms))
        print(path, *words)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
