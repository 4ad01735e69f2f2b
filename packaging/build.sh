#!/usr/bin/env bash
# Builds what a release has for one target, into target/release-files/TARGET: packaging/build.sh TARGET
#
#   x86_64-unknown-linux-musl    static programs; the Debian package and the image, too
#   aarch64-unknown-linux-musl   the same
#   aarch64-apple-darwin         both programs
#   x86_64-pc-windows-msvc       the simulator alone, because `quorlock run` needs Unix
#
# Man pages and completions are printed by the program that was built, so this runs on a machine of the target. It needs
# protoc, cargo-cyclonedx, jq, and on Linux musl-gcc, cargo-deb and buildah. SHA256SUMS covers everything that is released.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target=${1:?usage: packaging/build.sh TARGET}
case $target in
  *-linux-musl) programs=(quorlock quorlock-sim) linux=yes exe='' ;;
  *-apple-darwin) programs=(quorlock quorlock-sim) linux='' exe='' ;;
  *-windows-*) programs=(quorlock-sim) linux='' exe=.exe ;;
  *) echo "unknown target: $target; see packaging/build.sh" >&2; exit 64 ;;
esac

mkdir -p "${CARGO_TARGET_DIR:-target}"
targets=$(realpath "${CARGO_TARGET_DIR:-target}")
version=$(sed -nE 's/^version = "(.*)"/\1/p' Cargo.toml)
built=$targets/$target/dist
out=$targets/release-files/$target
rm -rf "$out"
mkdir -p "$out"

# The same code as `--profile dist`, without what a debugger needs.
export CARGO_PROFILE_DIST_DEBUG=none CARGO_PROFILE_DIST_STRIP=symbols
# Debian's musl-tools have no compiler of the name that is looked for on this target.
export CC_aarch64_unknown_linux_musl=musl-gcc

for program in "${programs[@]}"; do
  # etcd is no default feature because it is compiled with protoc. Users of the program do not compile it.
  case $program in
    quorlock) crate=quorlock-cli manifest=crates/quorlock-cli features=(--features etcd) ;;
    quorlock-sim) crate=quorlock-sim-lab manifest=sim/lab features=() ;;
  esac
  # One at a time: together, each program would be compiled with the features that the other one needs.
  cargo build --quiet --locked --profile dist --target "$target" -p "$crate" ${features[@]+"${features[@]}"}

  name=$program-$version-$target
  mkdir "$out/$name"
  cp "$built/$program$exe" LICENSE-MIT LICENSE-APACHE "$out/$name/"
  pages=$built/pages/$program
  rm -rf "$pages"
  mkdir -p "$pages"
  "$built/$program$exe" man --out "$pages/man"
  "$built/$program$exe" completions bash >"$pages/$program.bash"
  "$built/$program$exe" completions fish >"$pages/$program.fish"
  "$built/$program$exe" completions zsh >"$pages/_$program"
  cp -R "$pages" "$out/$name/pages"
  tar -czf "$out/$name.tar.gz" -C "$out" "$name"
  rm -r "${out:?}/$name"

  cargo tree --locked --package "$crate" --target "$target" --edges normal,build --prefix none --format '{p}' \
    ${features[@]+"${features[@]}"} |
    awk '{ sub(/^v/, "", $2); print $1, $2 }' | sort -u >"$targets/$target/crates"
  # The tool writes beside the manifest of each crate of the workspace.
  cargo cyclonedx --quiet --manifest-path "$manifest/Cargo.toml" --format json --spec-version 1.5 \
    --target "$target" --override-filename "$name.cdx" ${features[@]+"${features[@]}"}
  jq --rawfile tree "$targets/$target/crates" --arg root "$PWD" -f packaging/bill.jq "$manifest/$name.cdx.json" >"$out/$name.cdx.json"
  find benches crates sim testbed tests -name "$name.cdx.json" -delete
done

if [ -n "$linux" ]; then
  cargo deb --quiet --no-build --no-strip --profile dist --target "$target" -p quorlock-cli --output "$out/"

  # What the Dockerfile copies.
  context=$targets/$target/image
  rm -rf "$context"
  mkdir -p "$context"
  cp "$built/quorlock" LICENSE-MIT LICENSE-APACHE /etc/ssl/certs/ca-certificates.crt "$context/"
  image=quorlock:$version
  archive=$out/quorlock-$version-$target-image.tar
  store=(--storage-driver vfs --root "$context/../image-store" --runroot "$context/../image-run")
  buildah "${store[@]}" build --quiet --isolation chroot --file packaging/Dockerfile --tag "$image" "$context" >/dev/null
  buildah "${store[@]}" push --quiet "$image" "docker-archive:$archive:$image"
  buildah "${store[@]}" rmi --all >/dev/null
  gzip -9 "$archive"
fi

cd "$out"
if command -v sha256sum >/dev/null; then sum=(sha256sum); else sum=(shasum -a 256); fi
"${sum[@]}" -- * >"$targets/sums"
mv "$targets/sums" SHA256SUMS
