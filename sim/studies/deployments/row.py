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
            "seconds": whole["wall_seconds"],
            "commit": f"{commit:010x}",
        }
    )
)
