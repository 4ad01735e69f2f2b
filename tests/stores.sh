#!/usr/bin/env bash
# Installs the servers of the stores from Debian, the Go module proxy and Maven, and runs the tests of all stores on them: tests/stores.sh
#
# Each test starts a server of its own in a temporary folder, on a free port, and ends it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

missing=()
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing+=(postgresql)
[[ -x /usr/sbin/mariadbd ]] || missing+=(mariadb-server)
command -v etcd >/dev/null || missing+=(etcd-server)
# `etcdctl`, for the test of a snapshot that is restored, and what the driver of etcd is compiled with.
command -v etcdctl >/dev/null || missing+=(etcd-client)
command -v protoc >/dev/null || missing+=(protobuf-compiler libprotobuf-dev)
[[ -e /usr/share/java/zookeeper.jar ]] || missing+=(zookeeper)
command -v java >/dev/null || missing+=(default-jre-headless)
# A server that speaks the protocol of MongoDB is built by Maven.
command -v mvn >/dev/null || missing+=(maven)
command -v javac >/dev/null || missing+=(default-jdk-headless)
# versitygw needs Go 1.25 or later.
if ! command -v versitygw >/dev/null; then
  command -v go >/dev/null || missing+=(golang-go)
fi
if ((${#missing[@]})); then
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends "${missing[@]}"
fi
if ! command -v versitygw >/dev/null; then
  export PATH="$PATH:$(go env GOPATH)/bin"
  command -v versitygw >/dev/null || go install github.com/versity/versitygw/cmd/versitygw@v1.8.0
fi
mvn --batch-mode --quiet --file testbed/mongodb/pom.xml process-classes
export QUORLOCK_REQUIRE_MONGODB=1 QUORLOCK_REQUIRE_S3=1 QUORLOCK_REQUIRE_POSTGRES=1 QUORLOCK_REQUIRE_MYSQL=1 QUORLOCK_REQUIRE_ETCD=1 QUORLOCK_REQUIRE_ZOOKEEPER=1
cargo test --package quorlock-store --all-features "$@"
cargo test --package quorlock-cli --all-features --test command table "$@"
cargo test --package quorlock-cli --all-features --test command etcd "$@"
cargo test --package quorlock-cli --all-features --test command s3 "$@"
cargo test --package quorlock-cli --all-features --test command mongodb "$@"
