#!/usr/bin/env bash
# Checks `quorlock-sim rate` against plain counting: sim/check-rates.sh PROGRAM [--full | --coverage | --servers]
#
# PROGRAM is a built quorlock-sim. Each configuration has a deployment whose faults strike so often that violations can be counted.
# It agrees if the rate that is counted in long runs lies within the bounds of the estimate. By default 4 configurations are
# checked, with --full all 20. Prints a line for each, and exits with 1 if one does not agree. With --coverage, the first one is
# estimated 200 times, on seeds that differ, and counted once in 1200 runs: at least 93 % of the estimates must agree. With --servers, a
# deployment is estimated, and then runs on a real redis-server for MINUTES (default: 3) with faults a thousand times as often: the double holds
# that `chaos` counts there must agree. Timing is real there, so the machine should do nothing else.
set -euo pipefail

case ${1-} in
  '' | -h | --help) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit "$([ -n "${1-}" ] && echo 0 || echo 64)" ;;
esac
program=$(realpath "$1")
[ "${2-}" = --full ] && step=1 || step=5
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

work='workload = { lease = "300ms", hold_min = "20ms", hold_max = "100ms", think_min = "5ms", think_max = "40ms", backoff_cap = "50ms" }'
one='lock = "single"
nodes = { count = 1, persistence = "memory" }'
three='lock = "redlock"
variant = "published"
nodes = { count = 3, persistence = "memory" }'
five='lock = "redlock"
variant = "published"
nodes = { count = 5, persistence = "memory" }'
unwatched='lock = "redlock"
remedies = { trust = false, margin = "0s" }
nodes = { count = 3, persistence = "memory" }'
# A process: kind, target, rate, what else.
process() { printf '\n[[process]]\nkind = "%s"\neach = "%s"\nrate = "%s"\n%s\n' "$@"; }
crash() { process crash-node node "$1" "restart_after = \"${2:-5ms}\"
common = ${3:-0.0}"; }
flush() { process flush node "$1" "common = ${2:-0.0}"; }
step_clock() { process node-step node "$1" "by = \"$2\""; }
unchecked() { printf 'lock = "single"\nvariant = "validity-ignored"\nnodes = { count = 1 }\n'; }
pause() { process pause-client client "$1" "lasts = \"$2\""; }

# deployment PLAN PROCESSES
deployment() { printf 'horizon = "1h"\n[plan]\nclients = 3\n%s\n%s\n%s' "$1" "$work" "$2"; }
estimate() { "$program" rate "$1" --relative-error 0.15 --runs 1300 --json "${@:2}" || [ $? = 4 ]; }

if [ "${2-}" = --coverage ]; then
  deployment "$one" "$(crash 60/h)" >"$scratch/one.toml"
  "$program" rate "$scratch/one.toml" --count 1200 --json >"$scratch/count.json"
  for nth in $(seq 200); do
    # The seeds that these made-up commits choose have nothing in common.
    estimate "$scratch/one.toml" --commit "$(printf '%010x' $((nth * 100000)))"
  done >"$scratch/rates.jsonl"
  python3 - "$scratch/count.json" "$scratch/rates.jsonl" <<'PYTHON'
import json, sys
count, rates = json.load(open(sys.argv[1])), [json.loads(line) for line in open(sys.argv[2])]
agree = sum(rate["lower"] <= count["rate"] <= rate["upper"] for rate in rates)
mean = sum(rate["rate"] for rate in rates) / len(rates)
print(f"counted {count['violations']}: {count['rate']:.2f} an hour ({count['lower']:.2f} to {count['upper']:.2f}); "
      f"{agree} of {len(rates)} estimates agree, their mean is {mean:.2f}")
sys.exit(agree < 0.93 * len(rates))
PYTHON
  exit
fi

if [ "${2-}" = --servers ]; then
  # Holds are long, so that restarts and connections of real servers take a small part of them.
  plan='lock = "single"
variant = "set-nx"
clients = 3
nodes = { count = 1, persistence = "memory" }
network = { min = "100us", max = "1ms", call_timeout = "100ms", connect_timeout = "100ms" }
workload = { lease = "3s", hold_min = "600ms", hold_max = "1s", think_min = "50ms", think_max = "200ms", backoff_cap = "20ms", poll_cap = "20ms", checks = 1 }'
  printf 'horizon = "1h"\n[plan]\n%s\n%s' "$plan" "$(crash 0.9/h)" >"$scratch/slow.toml"
  "$program" rate "$scratch/slow.toml" --relative-error 0.1 --json >"$scratch/rate.json" || [ $? = 4 ]
  # The same plan with the strikes of a Poisson process of 900 an hour. All times are doubled when it runs.
  python3 - "$plan" "${MINUTES:-3}" >"$scratch/fast.toml" <<'PYTHON'
import random, sys
ends, at, draw = 30 * float(sys.argv[2]), 1.0, random.Random(1)
print(f'{sys.argv[1]}\nduration = "{ends:.3f}s"\nnot_demanded = ["exclusion", "fencing"]')
while (at := at + draw.expovariate(900 / 3600)) < ends - 2:
    print(f'[[faults]]\nkind = "crash-node"\nat = "{at:.3f}s"\nnode = 0\nrestart_after = "5ms"')
PYTHON
  "$program" chaos "$scratch/fast.toml" --scale 2 --json >"$scratch/chaos.json"
  python3 - "$scratch/rate.json" "$scratch/chaos.json" <<'PYTHON'
import json, math, sys
rate, seen = json.load(open(sys.argv[1])), json.load(open(sys.argv[2]))["observed"]
# In the time of the plan, which is half of the real one.
hours = seen["seconds"] / 2 / 3600
def bound(share, count):
    """The mean of a Poisson count at most `count` of which has this probability."""
    least, most = 0.0, 10.0 * (count + 10)
    for _ in range(100):
        mean = (least + most) / 2
        below = sum(math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) for k in range(count + 1))
        least, most = (mean, most) if share < below else (least, mean)
    return mean
count = seen["overlaps"]
lower = bound(0.975, count - 1) if count else 0.0
upper = bound(0.025, count)
agrees = lower <= 1000 * hours * rate["upper"] and 1000 * hours * rate["lower"] <= upper
print(f"{seen['faults']} crashes of a real server in {seen['seconds']} s, {count} double holds ({lower:.1f} to {upper:.1f}); estimated, a thousand "
      f"times: {1000 * hours * rate['rate']:.1f} ({1000 * hours * rate['lower']:.1f} to {1000 * hours * rate['upper']:.1f}): "
      + ("agrees" if agrees else "DOES NOT AGREE"))
sys.exit(not agrees)
PYTHON
  exit
fi

number=0 wrong=0
# configuration PLAN PROCESSES
configuration() {
  number=$((number + 1))
  [ $(((number - 1) % step)) = 0 ] || return 0
  local file=$scratch/$number.toml
  deployment "$1" "$2" >"$file"
  estimate "$file" >"$scratch/rate.json"
  "$program" rate "$file" --count 60 --json >"$scratch/count.json"
  python3 - "$number" "$scratch/rate.json" "$scratch/count.json" <<'PYTHON' || wrong=$((wrong + 1))
import json, sys
number, rate, count = sys.argv[1], json.load(open(sys.argv[2])), json.load(open(sys.argv[3]))
agrees = rate["lower"] <= count["rate"] <= rate["upper"]
print(f"{number:>2}: {rate['rate']:.1f} an hour ({rate['lower']:.1f} to {rate['upper']:.1f}, {rate['runs']} runs), counted "
      f"{count['violations']}: {count['rate']:.1f} ({count['lower']:.1f} to {count['upper']:.1f}): "
      + ("agrees" if agrees else "DOES NOT AGREE"))
sys.exit(not agrees)
PYTHON
}

configuration "$one" "$(crash 60/h)"
configuration "$one" "$(crash 300/h 50ms)"
configuration "$one" "$(flush 120/h)"
configuration "$one" "$(flush 60/h; pause 200/h 'pareto(50ms, 1.1)')"
configuration "$one" "$(step_clock 60/h 280ms)"
configuration "$three" "$(crash 100/h)"
configuration "$three" "$(crash 300/h 20ms)"
configuration "$three" "$(crash 100/h 5ms 0.2)"
configuration "$three" "$(flush 100/h 0.1)"
configuration "$three" "$(step_clock 200/h 300ms)"
configuration "$five" "$(crash 200/h)"
configuration "$five" "$(crash 100/h 5ms 0.3)"
configuration "$five" "$(flush 200/h 0.05)"
configuration "$five" "$(flush 100/h; crash 100/h)"
configuration "$unwatched" "$(crash 200/h)"
configuration "$unwatched" "$(crash 100/h 5ms 0.2)"
configuration "$unwatched" "$(flush 200/h; pause 100/h 'exponential(100ms)')"
configuration "$unwatched" "$(step_clock 200/h 300ms; crash 100/h)"
configuration "$(unchecked)" "$(pause 300/h 'uniform(100ms, 800ms)')"
configuration "$(unchecked)" "$(pause 300/h 'pareto(100ms, 1.5)')"
echo "$(((number + step - 1) / step)) configurations, $wrong do not agree"
[ "$wrong" = 0 ]
