#!/usr/bin/env bash
# Tests the files for Prometheus and Grafana in docs/operating: tests/operating.sh
#
# `promtool` checks the alert rules and runs their tests. Then a real Prometheus, which has loaded the rules, scrapes a
# service whose servers are killed and restarted (tests/examples/observed.rs) for half a minute, on a free port of the
# loopback interface. Each expression of the rules and the dashboard must return a series. The script needs redis-server,
# Prometheus with promtool (Debian: apt-get install prometheus), curl and Python 3.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

for program in redis-server prometheus promtool curl python3; do
  command -v "$program" >/dev/null || { echo "$program is missing (Debian: apt-get install redis-server prometheus curl python3)" >&2; exit 2; }
done

step() { printf '\n== %s\n' "$*"; }

step "rules"
promtool check rules docs/operating/alerts.yml
promtool test rules docs/operating/alerts_test.yml

step "a service under faults, and Prometheus"
cargo build --quiet -p quorlock-tests --features metrics --example observed
folder=$(mktemp -d)
started=()
trap 'kill "${started[@]}" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$folder"' EXIT
target/debug/examples/observed 90 >"$folder/service" 2>"$folder/service.log" &
started+=($!)
for _ in $(seq 100); do [ -s "$folder/service" ] && break; sleep 0.1; done
service=$(head -n 1 "$folder/service")
[ -n "$service" ] || { echo "the service did not start:" >&2; cat "$folder/service.log" >&2; exit 1; }
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat >"$folder/prometheus.yml" <<YAML
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [$PWD/docs/operating/alerts.yml]
scrape_configs:
  - job_name: observed
    static_configs: [{targets: ["$service"]}]
YAML
prometheus --config.file="$folder/prometheus.yml" --storage.tsdb.path="$folder/data" \
  --web.listen-address="127.0.0.1:$port" >"$folder/prometheus.log" 2>&1 &
started+=($!)

python3 - "http://127.0.0.1:$port" <<'PYTHON'
"""Waits until every expression has returned a series and a lost lock has fired its alert, at most 80 s."""
import json, re, sys, time, urllib.error, urllib.parse, urllib.request

base = sys.argv[1]


def get(path, **parameters):
    with urllib.request.urlopen(f"{base}{path}?{urllib.parse.urlencode(parameters)}", timeout=5) as answer:
        return json.load(answer)["data"]


def rules():
    return [rule for group in get("/api/v1/rules")["groups"] for rule in group["rules"]]


deadline = time.monotonic() + 80
while True:
    try:
        loaded = rules()
        break
    except (urllib.error.URLError, ConnectionError):
        if deadline < time.monotonic():
            sys.exit("Prometheus does not answer")
        time.sleep(0.2)

waiting = {}
for rule in loaded:
    # A rule returns a series only while it fires: its operands must exist. The parts of an "and" are checked separately.
    for part in re.split(r"\band\b(?: ignoring \(\w+\))?", rule["query"]):
        waiting[f"{rule['name']}: {re.sub(r'(>|==) *[0-9]+ *$', '', part.strip())}"] = None
with open("docs/operating/dashboard.json", encoding="utf-8") as file:
    for panel in json.load(file)["panels"]:
        for target in panel["targets"]:
            waiting[f"{panel['title']}: {target['expr'].replace('$__rate_interval', '30s')}"] = None
count, fired = len(waiting), set()
print(f"{len(loaded)} rules loaded, {count} expressions")
while (waiting or "QuorlockLockLost" not in fired) and time.monotonic() < deadline:
    for said in list(waiting):
        result = get("/api/v1/query", query=said.split(": ", 1)[1])["result"]
        # Not-a-number is a quantile of no values.
        if any(series["value"][1] != "NaN" for series in result):
            del waiting[said]
    fired |= {rule["name"] for rule in rules() if rule["state"] != "inactive"}
    time.sleep(0.5)
for said in waiting:
    print(f"no series: {said}", file=sys.stderr)
print(f"{count - len(waiting)} of {count} expressions return a series; pending or firing: {', '.join(sorted(fired)) or 'none'}")
sys.exit(bool(waiting) or "QuorlockLockLost" not in fired)
PYTHON
