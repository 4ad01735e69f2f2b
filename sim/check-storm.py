#!/usr/bin/env python3
"""Checks `quorlock-sim rate` against Storm, a probabilistic model checker: sim/check-storm.py PROGRAM [--full]

PROGRAM is a built quorlock-sim. Redlock as published on N servers that forget everything when they restart: two clients take turns, so that a
client holds the name for H seconds, another one waits, and each hold has all N claims. The lock breaks if V = N - floor(N / 2) claims of one hold are lost before
another client can use that, which is a continuous-time Markov chain with a hold of M exponential phases. Storm computes its rate of violations for the
least and for the largest time that the simulated network and the pauses between two tries need. The bounds of `rate` must meet these two. Prints a line
for each of three deployments, with --full of five, and exits with 1 if one does not agree.

It needs stormpy: pip install stormpy.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PHASES = 60
HOLD = 2.0
# Between two holds, and before the end of a hold from when on a loss has no effect: from two trips of 2 ms each way to a pause between two tries of
# at most 50 ms, a restart of 5 ms and three trips.
LEAST, MOST = 0.004, 0.070

CHAIN = f"""
ctmc
const int N; const int V; const double lambda; const double mu; const double HOLD; const double GAP;
const int M = {PHASES};
module lock
  phase : [0..M] init 0; // M: no client holds the name
  lost : [0..N] init 0;
  <> phase < M & lost < N -> (N - lost) * lambda : (lost' = lost + 1);
  <> phase < M & lost < N -> mu : (lost' = N);
  <> phase < M - 1 -> M / HOLD : (phase' = phase + 1);
  <> phase = M - 1 & lost < V -> M / HOLD : (phase' = M) & (lost' = 0);
  <> phase = M - 1 & lost >= V -> M / HOLD : (phase' = M) & (lost' = 0);
  <> phase = M -> 1 / GAP : (phase' = 0);
endmodule
// How often a hold with enough lost claims ends.
rewards "violations" phase = M - 1 & lost >= V : M / HOLD; endrewards
"""

DEPLOYMENT = """
horizon = "1h"
largest = {largest}
# Two turns of hold and gap, so that strikes meet each part of a turn equally often.
window = "4.06s"
[plan]
lock = "redlock"
variant = "published"
clients = 2
nodes = {{ count = {n}, persistence = "memory" }}
network = {{ min = "2ms", max = "2ms" }}
workload = {{ lease = "10s", hold_min = "2s", hold_max = "2s", think_min = "1.5s", think_max = "1.6s", backoff_cap = "50ms", poll_cap = "50ms" }}
[[process]]
kind = "crash-node"
each = "node"
rate = "{rate}/h"
common = {common}
restart_after = "5ms"
"""


def by_storm(stormpy, n: int, rate: float, common: float, cut: float) -> float:
    """The violations in an hour, if the last `cut` seconds of a hold, and the gap between two of that length, have no effect."""
    # `common` is the share of the restarts of a server that strike all of them.
    constants = {"N": n, "V": n - n // 2, "lambda": rate * (1 - common) / 3600, "mu": rate * common / 3600, "HOLD": HOLD - cut, "GAP": 2 * cut}
    chain = CHAIN
    for name, value in constants.items():
        chain = re.sub(rf"const (int|double) {name};", rf"const \1 {name} = {value!r};", chain)
    with tempfile.NamedTemporaryFile("w", suffix=".prism") as file:
        file.write(chain)
        file.flush()
        program = stormpy.parse_prism_program(file.name)
    (formula,) = stormpy.parse_properties('R{"violations"}=? [LRA]', program)
    model = stormpy.build_model(program, [formula])
    return 3600 * stormpy.model_checking(model, formula).get_value(model.initial_states[0])


def by_rate(program: str, n: int, rate: float, common: float, runs: int) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "chain.toml"
        file.write_text(DEPLOYMENT.format(n=n, rate=rate, common=common, largest=n - n // 2 + 1))
        command = [program, "rate", str(file), "--relative-error", "0.1", "--runs", str(runs), "--json"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode not in (0, 4):
            sys.exit(done.stderr)
        return json.loads(done.stdout)


def main() -> int:
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        return 0 if len(sys.argv) > 1 else 64
    try:
        import stormpy
    except ImportError:
        print("there is no stormpy: pip install stormpy", file=sys.stderr)
        return 69
    is_full = "--full" in sys.argv
    deployments = [(1, 20, 0.0), (3, 20, 0.0), (3, 20, 0.2)] + [(5, 40, 0.0), (5, 40, 0.1)] * is_full
    wrong = 0
    for n, rate, common in deployments:
        found = by_rate(sys.argv[1], n, rate, common, 40_000 if is_full else 4_000)
        chain = sorted(by_storm(stormpy, n, rate, common, cut) for cut in (LEAST, MOST))
        agrees = chain[0] <= found["upper"] and found["lower"] <= chain[1]
        wrong += not agrees
        print(
            f"{n} servers, {rate} restarts an hour each, {common:.0%} of all at once: {found['rate']:.3g} violations an hour "
            f"({found['lower']:.3g} to {found['upper']:.3g}, {found['runs']} runs); Storm: {chain[0]:.3g} to {chain[1]:.3g}: "
            + ("agrees" if agrees else "DOES NOT AGREE")
        )
    print(f"{len(deployments)} deployments, {wrong} do not agree")
    return int(wrong > 0)


sys.exit(main())
