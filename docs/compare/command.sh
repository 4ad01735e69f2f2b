#!/usr/bin/env bash
# Runs a command under quorlock run, etcdctl lock and flock in ten situations, and prints the outcomes: the table of
# docs/src/command.md. It needs redis-server, etcd, etcdctl, flock and script(1), and a built quorlock.
#   docs/compare/command.sh target/debug/quorlock
set -u
quorlock=$(realpath "${1:-target/debug/quorlock}")
dir=$(mktemp -d)
cd "$dir"
redis-server --port 17391 --save '' --dir "$dir" >redis.log 2>&1 &
redis=$!
etcd --data-dir "$dir/etcd" --listen-client-urls http://127.0.0.1:17392 --advertise-client-urls http://127.0.0.1:17392 \
  --listen-peer-urls http://127.0.0.1:17393 >etcd.log 2>&1 &
etcd=$!
export QUORLOCK_NODES=redis://127.0.0.1:17391 ETCDCTL_API=3 ETCDCTL_ENDPOINTS=http://127.0.0.1:17392
trap 'kill -CONT $redis $etcd; kill -9 $redis $etcd; cd /; rm -rf "$dir"' EXIT 2>/dev/null
until redis-cli -p 17391 ping >/dev/null 2>&1 && etcdctl endpoint health >/dev/null 2>&1; do sleep 0.1; done

number=0
# Sets the arguments of a tool before a command; the lease or TTL is 2 s if the tool has one.
under() {
  case $1 in
    quorlock) words=("$quorlock" run --lease 2s "lock$number" --) ;;
    etcdctl) words=(etcdctl lock --ttl 2 -- "lock$number") ;;
    flock) words=(flock "$dir/lock$number") ;;
  esac
}
lives() { kill -0 "$1" 2>/dev/null && ! grep -q '^State:.Z' "/proc/$1/status" 2>/dev/null; }
wait_for() { for _ in $(seq 200); do [ -s "$1" ] && return; sleep 0.05; done; echo "no $1" >&2; }
# Prints how long a process took to end, at most 8 s.
gone_after() {
  local began=$EPOCHREALTIME
  while lives "$1"; do
    awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { exit !(b - a > 8) }' && { echo "runs on after 8 s"; return; }
    sleep 0.02
  done
  awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { printf "gone after %.1f s\n", b - a }'
}
# Starts a command that writes its process id to child; $wrapper is the tool's process.
start() {
  number=$((number + 1)); rm -f child grandchild; under "$1"; shift
  "${words[@]}" "$@" >out 2>err & wrapper=$!
  wait_for child
}
server() { case $1 in quorlock) echo "$redis" ;; etcdctl) echo "$etcd" ;; flock) echo ;; esac; }
clean() { kill -9 "$(cat child)" "$(cat grandchild 2>/dev/null)" "$wrapper" 2>/dev/null; wait "$wrapper" 2>/dev/null; }

say() { printf '%-9s %-34s %s\n' "$1" "$2" "$3"; }
for tool in quorlock etcdctl flock; do
  start $tool sh -c 'echo $$ >child; exec sleep 60'
  kill -9 "$wrapper"; say $tool 'wrapper killed: command' "$(gone_after "$(cat child)")"; clean

  if [ $tool != flock ]; then
    start $tool sh -c 'echo $$ >child; exec sleep 60'
    kill -STOP "$(server $tool)"; say $tool 'server stopped: command' "$(gone_after "$(cat child)")"
    say $tool 'server stopped: wrapper' "$(gone_after "$wrapper")"; kill -CONT "$(server $tool)"; clean
    start $tool sh -c 'trap "" TERM; echo $$ >child; while :; do sleep 1; done'
    kill -STOP "$(server $tool)"; say $tool 'the same, it ignores TERM' "$(gone_after "$(cat child)")"; kill -CONT "$(server $tool)"; clean
  fi

  start $tool sh -c 'sh -c "echo \$\$ >grandchild; exec sleep 60" & echo $$ >child; wait'
  wait_for grandchild; kill -9 "$wrapper"; say $tool 'wrapper killed: grandchild' "$(gone_after "$(cat grandchild)")"; clean

  number=$((number + 1)); under $tool; "${words[@]}" sh -c 'exit 7' >out 2>err; say $tool 'exit 7 comes back as' $?

  start $tool sh -c 'trap "echo TERM >told; exit 0" TERM; echo $$ >child; while :; do sleep 0.05; done'
  rm -f told; kill -TERM "$wrapper"; sleep 1
  say $tool 'TERM to the wrapper: command' "$([ -s told ] && echo 'is told' || { lives "$(cat child)" && echo 'runs on, not told' || echo 'gone, not told'; })"; clean

  number=$((number + 1)); under $tool; say $tool 'stdin' "$(echo text | timeout 5 "${words[@]}" cat 2>/dev/null | tr '\n' ' ')"

  number=$((number + 1)); under $tool
  say $tool 'reads from its terminal' "$( (sleep 1; echo typed; sleep 1) | timeout 6 script -qec "$(printf '%q ' "${words[@]}") sh -c 'read -r line </dev/tty; echo got-\$line'" /dev/null 2>/dev/null | tr -d '\r' | grep -o 'got-.*' || echo no)"

  start $tool sh -c 'echo $$ >child; exec sleep 60'
  case $tool in
    quorlock) "$quorlock" force-release "lock$number" >/dev/null ;;
    etcdctl) etcdctl lease list | tail -n +2 | xargs -n1 etcdctl lease revoke >/dev/null ;;
    flock) rm "$dir/lock$number" ;;
  esac
  say $tool 'lock taken by force: command' "$(gone_after "$(cat child)")"
  wait "$wrapper" 2>/dev/null & sleep 0; if lives "$wrapper"; then say $tool 'and the wrapper' 'runs on'; else wait "$wrapper"; say $tool 'and the wrapper ends with' $?; fi; clean

  number=$((number + 1)); under $tool; say $tool 'token' "$("${words[@]}" env 2>/dev/null | grep -E '^(QUORLOCK_FENCING|ETCD_LOCK|FLOCK)' | tr '\n' ' ')"
done
