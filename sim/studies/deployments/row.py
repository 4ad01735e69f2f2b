"""Prints what the rate of a deployment is, as one JSON object: row.py DEPLOYMENT LOCK PRINTED ROWS MANIFEST"""

import json
import sys

deployment, lock, printed, rows, manifest = sys.argv[1:]
with open(printed) as file:
    rate = json.load(file)
with open(manifest) as file:
    whole = json.load(file)
holds = commands = 0
with open(rows) as file:
    for row in map(json.loads, file):
        if row["cell"] == "no fault":
            holds += row["holds"]
            commands += row["commands"]
# How long one crash keeps clients from the lock, and a crash of all.
outages = {
    part["cut_set"]: part["serving"]["outage"]
    for part in rate["strata"]
    if part["cut_set"] in ("crash-node", "crash-node of all") and part["serving"]
}
# The inverse of what `--commit` does.
commit = whole["cells"][0]["seeds"]["start"] - 100_000_000
print(
    json.dumps(
        {
            "deployment": deployment,
            "lock": lock,
            "rate": rate["rate"],
            "lower": rate["lower"],
            "upper": rate["upper"],
            "broken": sum(part["broken"] for part in rate["strata"]),
            "runs": rate["runs"],
            "requests_per_hold": commands / holds,
            "outages": outages,
            "unavailable_seconds": (1 - rate["availability"]) * 365 * 86400,
            "seconds": whole["wall_seconds"],
            "commit": f"{commit:010x}",
        }
    )
)
