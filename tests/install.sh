#!/usr/bin/env bash
# Builds what a release has for this machine, and installs and runs it: tests/install.sh
#
# The static programs and the Debian package run in a root that has nothing but Debian's minimal packages, and the image's program in
# the root of its image, with a redis-server of this machine. Needs Linux, root or sudo, and what packaging/build.sh needs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target=$(uname -m)-unknown-linux-musl
version=$(sed -nE 's/^version = "(.*)"/\1/p' Cargo.toml)
files=${CARGO_TARGET_DIR:-target}/release-files/$target

fail() { echo "$*" >&2; exit 1; }

# Runs a command as root.
privileged() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

packaging/build.sh "$target"

work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; privileged rm -rf --one-file-system "$work"' EXIT

echo "checksums"
(cd "$files" && sha256sum --check --strict --quiet SHA256SUMS)
listed=$(sed 's/^[0-9a-f]* [ *]//' "$files/SHA256SUMS" | sort)
there=$(cd "$files" && find . -type f ! -name SHA256SUMS -printf '%P\n' | sort)
[ "$listed" = "$there" ] || fail "SHA256SUMS does not list every file of $files"

echo "archives"
for program in quorlock quorlock-sim; do
  name=$program-$version-$target
  tar -xzf "$files/$name.tar.gz" -C "$work"
  # Without an interpreter and needed libraries, a program is static.
  segments=$(readelf --program-headers --dynamic --wide "$work/$name/$program")
  if grep -E 'INTERP|\(NEEDED\)' <<<"$segments"; then fail "$program is not static"; fi
  for file in LICENSE-MIT LICENSE-APACHE pages/{"$program".bash,"$program".fish,_"$program"} pages/man/"$program"{,-run}.1; do
    [ -s "$work/$name/$file" ] || fail "the archive of $program has no $file"
  done
done

echo "bills of materials"
# bill PROGRAM PACKAGE [OPTION..]: compares the bill with what cargo compiles into the program.
bill() {
  local program=$1 package=$2
  shift 2
  cargo tree --locked --package "$package" --target "$target" --edges normal,build --prefix none --format '{p}' "$@" |
    awk '{ sub(/^v/, "", $2); print $1, $2 }' | sort -u >"$work/compiled"
  jq -r '.metadata.component, .components[] | "\(.name) \(.version)"' "$files/$program-$version-$target.cdx.json" | sort -u >"$work/listed"
  diff "$work/compiled" "$work/listed" || fail "the bill of $program is not what it is made of (<: is missing, >: is too much)"
  jq -e 'all(.components[]; .licenses)' "$files/$program-$version-$target.cdx.json" >/dev/null || fail "a crate of $program has no licence"
  printf '%s: %s crates\n' "$program" "$(wc -l <"$work/listed")"
}
bill quorlock quorlock-cli --features etcd
bill quorlock-sim quorlock-sim-lab

for _ in {1..20}; do
  port=$((20000 + RANDOM % 10000))
  redis-server --bind 127.0.0.1 --port $port --save '' --dir "$work" >/dev/null &
  server=$!
  for _ in {1..50}; do
    kill -0 "$server" 2>/dev/null || break
    ! redis-cli -p $port PING >/dev/null 2>&1 || break 2
    sleep 0.1
  done
  kill "$server" 2>/dev/null || true
  server=
done
[ -n "$server" ] || fail "redis-server does not start"
nodes=redis://127.0.0.1:$port

# inside ROOT USER COMMAND..: runs a command in this root, with the devices and processes that every container has. The mounts end
# with the command.
inside() {
  # shellcheck disable=SC2016 # The variables are those of the inner shell.
  privileged unshare --mount bash -c '
    set -euo pipefail
    mkdir -p "$0/dev" "$0/proc"
    mount --bind /dev "$0/dev"
    mount -t proc proc "$0/proc"
    exec chroot --userspec="$1" "$0" "${@:2}"' "$@"
}

# locks ROOT USER COMMAND..: locks a name while a command of this root runs.
locks() {
  local root=$1 user=$2
  shift 2
  inside "$root" "$user" /usr/bin/quorlock run -n --nodes "$nodes" release/test -- "$@"
  [ "$(redis-cli -p "$port" EXISTS release/test)" = 0 ] || fail "the lock is not released"
}

echo "the Debian package"
root=$work/root
# shellcheck disable=SC1091 # It is a file of the machine.
privileged debootstrap --variant=minbase "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$root" >/dev/null
privileged cp "$files"/*.deb "$work/quorlock-sim-$version-$target/quorlock-sim" "$root/tmp/"
privileged chroot "$root" sh -c 'dpkg --install /tmp/*.deb' >/dev/null
[ "$(privileged chroot "$root" quorlock --version)" = "quorlock $version" ] || fail "the package has another version"
# shellcheck disable=SC2016 # The variable is that of the command.
locks "$root" 65532:65532 sh -c 'test "$QUORLOCK_FENCING_TOKEN" -gt 0'
inside "$root" root:root sh -c 'quorlock init sqlite:/tmp/locks.db && quorlock run -n --nodes sqlite:/tmp/locks.db a -- true'
privileged chroot "$root" /tmp/quorlock-sim run --seed 42 >/dev/null
man --manpath "$root/usr/share/man" --where quorlock quorlock-run quorlock-leader >/dev/null
for file in bash-completion/completions/quorlock fish/vendor_completions.d/quorlock.fish zsh/vendor-completions/_quorlock; do
  [ -s "$root/usr/share/$file" ] || fail "the package has no $file"
done
privileged chroot "$root" bash -c '. /usr/share/bash-completion/completions/quorlock && complete -p quorlock' >/dev/null
privileged chroot "$root" dpkg --purge quorlock >/dev/null
[ ! -e "$root/usr/bin/quorlock" ] || fail "the package leaves its program behind"

echo "the image"
mkdir "$work/image" "$work/image-root"
tar -xzf "$files/quorlock-$version-$target-image.tar.gz" -C "$work/image"
jq -r '.[0].Layers[]' "$work/image/manifest.json" | while read -r layer; do
  privileged tar -xf "$work/image/$layer" -C "$work/image-root"
done
config=$work/image/$(jq -r '.[0].Config' "$work/image/manifest.json")
[ "$(jq -r .config.User "$config")" = 65532:65532 ] || fail "the image runs as root"
bytes=$(find "$work/image-root" -type f -printf '%s\n' | awk '{ sum += $1 } END { print sum }')
[ "$bytes" -lt 20000000 ] || fail "the image has $bytes bytes, and should have less than 20 MB"
expected=$(printf '%s\n' etc/ssl/certs/ca-certificates.crt usr/bin/quorlock usr/share/doc/quorlock/LICENSE-{APACHE,MIT})
there=$(cd "$work/image-root" && find . -type f -printf '%P\n' | sort)
[ "$there" = "$expected" ] || fail "the image has other files than expected: $there"
locks "$work/image-root" 65532:65532 /usr/bin/quorlock --version >/dev/null
echo "files of the image: $bytes bytes"

(cd "$files" && stat -c '%n: %s bytes' -- *)
