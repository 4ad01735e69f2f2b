#!/usr/bin/env bash
# Measures what quorlock-sim costs as a dev-dependency, in processor time: tests/slim.sh [ROUNDS] [JOBS]
#
# Creates two packages in a temporary folder: one with `quorlock`, and one that also has `quorlock-sim` for its tests.
# Compiles both from scratch with `cargo test --no-run`, in turn, ROUNDS times (default: 2), and prints the user and system
# time of each build, and the difference of the smallest times. The packages use the lock file of this repository, so
# nothing is downloaded that a build of the repository does not have. Each round takes two to three minutes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

rounds=${1:-2} jobs=${2:-2}
[[ $rounds =~ ^[1-9][0-9]*$ && $jobs =~ ^[1-9][0-9]*$ ]] || { echo "the numbers of rounds and jobs must be at least 1: tests/slim.sh 2 2" >&2; exit 64; }

root=$PWD
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# package NAME DEV_DEPENDENCY: a package with one test that takes a lock from the embedded node.
package() {
  mkdir -p "$folder/$1/src" "$folder/$1/tests"
  cat >"$folder/$1/Cargo.toml" <<TOML
[workspace]

[package]
name = "$1"
version = "0.1.0"
edition = "2024"

[dependencies]
quorlock = { path = "$root/crates/quorlock" }

[dev-dependencies]
$2
TOML
  echo '//! A package with locks.' >"$folder/$1/src/lib.rs"
  cp Cargo.lock "$folder/$1/Cargo.lock"
}
package alone ''
package with 'quorlock-sim = { path = "'"$root"'/sim/testkit" }'
echo '#[test] fn has_a_lock() { let _ = quorlock::Locks::builder(); }' >"$folder/alone/tests/one.rs"
cat >"$folder/with/tests/one.rs" <<'RUST'
use std::rc::Rc;
use std::time::Duration;

use quorlock_sim::always;
use quorlock_sim::context::Context;
use quorlock_sim::resource::KeyValueStore;

#[quorlock_sim::test(seeds = 20, world = || KeyValueStore::new("stock").with("pieces", 10_i64))]
async fn no_sale_is_lost(ctx: Context, stock: Rc<KeyValueStore<i64>>) {
    let stock = stock.client(&ctx);
    loop {
        ctx.sleep(Duration::from_millis(5)).await;
        let Ok(guard) = ctx.locks().lock("stock").acquire().await else { continue };
        let token = guard.fencing_token();
        if let Ok(Some(left)) = stock.get_fenced("pieces", token).await
            && let Ok(Some(before)) = stock.put_fenced("pieces", left - 1, token).await
        {
            always!(before == left, "no sale is lost");
        }
    }
}
RUST

# Compiles as for a crate from a registry: not incrementally, and with the profile of the user.
unset CARGO_PROFILE_DEV_DEBUG CARGO_PROFILE_TEST_DEBUG CARGO_PROFILE_TEST_OPT_LEVEL RUSTFLAGS
export CARGO_INCREMENTAL=0

# seconds PACKAGE: builds the package, and prints the user and system time of the build.
seconds() {
  rm -rf "$folder/target"
  TIMEFORMAT='%U %S'
  { time cargo test --quiet --no-run --offline --jobs "$jobs" --manifest-path "$folder/$1/Cargo.toml" --target-dir "$folder/target" \
    >"$folder/log" 2>&1; } 2>"$folder/times" || { cat "$folder/log" >&2; exit 1; }
  awk '{ printf "%.1f\n", $1 + $2 }' "$folder/times"
}

least_alone= least_with=
for round in $(seq "$rounds"); do
  alone=$(seconds alone)
  with=$(seconds with)
  echo "round $round: quorlock alone $alone s, with quorlock-sim $with s"
  least_alone=$(printf '%s\n' $least_alone "$alone" | sort -g | head -1)
  least_with=$(printf '%s\n' $least_with "$with" | sort -g | head -1)
done
echo "$least_alone $least_with" | awk '{ printf "quorlock alone %.1f s, with quorlock-sim %.1f s: %.1f s more\n", $1, $2, $2 - $1 }'
