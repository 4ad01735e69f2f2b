#!/usr/bin/env python3
"""Reads histories of quorlock-sim and judges them: read.py FILE... 

A history is a header, followed by one JSON object on each line (docs/src/simulator.md, "Histories for other checkers"). For
each file, the script prints one line with its name and three words, each "ok" or "broken":

  overlaps   broken if clients believed at the same time in two holds that exclude each other
  fencing    broken if two holds have the same token, if a hold that was requested after another one was won has the smaller
             token, or if the store accepted a smaller token after a larger one
  terms      broken if a leader that was elected later has the smaller term

It needs only Python 3.8.
"""

import json
import sys
from collections import defaultdict


def read(path):
    """Returns the header of a history, and its lines."""
    with open(path, encoding="utf-8") as file:
        header, *lines = map(json.loads, file)
    if header["format"] != "quorlock-history" or header["format_version"] != 2:
        raise ValueError(f"{path}: this reads quorlock-history 2, not {header['format']} {header['format_version']}")
    return header, lines


def of(lines, *operations):
    """Yields the successful lines of these operations, each with its only name."""
    for line in lines:
        if line["operation"] in operations and line["outcome"] == "ok":
            yield line["names"][0], line


def together(one, other):
    """Returns whether two holds of one name may exist at the same time."""
    return (
        one["hold"] == other["hold"]
        or (one["access"] == "read" and other["access"] == "read")
        or (one["access"] == "read" and one["under"] == other["hold"])
        or (other["access"] == "read" and other["under"] == one["hold"])
    )


def overlaps(lines):
    inside = defaultdict(list)
    for name, use in of(lines, "use", "lead"):
        # Lines are in the order of `invoke`, so a line that ended before this one began does not overlap a later one either.
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
        # In the order of tokens, no hold may have been won before a hold with a smaller token was requested.
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
