"""Every kind of node that an address names: TLS, a Sentinel group, a cluster, and the stores that are installed."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import urllib.request
from pathlib import Path
from typing import Callable, Iterator

import pytest
from servers import FREE, Server, free_port, listens, until

import quorlock
import quorlock.asyncio

Start = Callable[..., Server]


def excludes(address: str, settings: quorlock.Settings) -> None:
    """Locks for threads and for asyncio exclude each other at this address."""

    async def refused() -> None:
        async with await quorlock.asyncio.Locks.connect(address, **settings) as others:
            assert await others.lock("orders/42").try_acquire() is None
            async with others.lock("stock/7", wait=20) as guard:
                await guard.extend(20)

    with quorlock.Locks.connect(address, **settings) as locks:
        locks.ready()
        with locks.lock("orders/42", wait=20) as guard:
            asyncio.run(refused())
            assert locks.inspect("orders/42").owner == guard.owner_id
        locks.lock("stock/7", wait=20).acquire().release()


def documented_addresses() -> "list[str]":
    """An address of each scheme that the reference page lists, without the parts that may be left out."""
    page = (Path(__file__).parents[3] / "docs/src/reference/addresses.md").read_text(encoding="utf-8")
    section = page.split("## Forms")[1].split("## ")[0]
    written = re.findall(r"`([a-z0-9+]+:/[^`]*)`", section)
    forms: dict[str, str] = {}
    for form in written:
        scheme, rest = form.split(":", 1)
        while rest != (shorter := re.sub(r"\[[^][]*\]", "", rest)):
            rest = shorter
        # What has a scheme alone is written as the others of its kind.
        forms[scheme] = rest if rest != "//" else forms[scheme.replace("valkey", "redis").replace("rediss", "redis")]
    # The wheel is built without the driver of MongoDB, with which it would be too large.
    del forms["mongodb"]
    return [f"{scheme}:{rest}" for scheme, rest in forms.items()]


@pytest.mark.parametrize("address", documented_addresses())
def test_every_address_of_the_rust_library_is_one_of_the_package(address: str) -> None:
    # Nothing is sent: an address that the wheel was built without is an error here.
    quorlock.Locks.connect(address, lazy=True).close()


def test_the_page_lists_many_addresses() -> None:
    assert {"redis", "rediss", "valkeys", "rediss+cluster", "etcd", "s3", "zk"} <= {one.split(":")[0] for one in documented_addresses()}


def openssl(*arguments: "str | Path") -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an authority, a certificate of the server 127.0.0.1, and one of a client."""
    folder = tmp_path_factory.mktemp("certificates")
    new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    openssl("req", "-x509", *new, "-subj", "/CN=authority", "-keyout", folder / "ca.key", "-out", folder / "ca.pem")
    for name, extension in [("server", "subjectAltName=IP:127.0.0.1"), ("client", "extendedKeyUsage=clientAuth")]:
        signer = ["-CA", str(folder / "ca.pem"), "-CAkey", str(folder / "ca.key")]
        openssl(
            "req", "-x509", *new, *signer, "-subj", f"/CN={name}", "-addext", extension, "-addext", "basicConstraints=critical,CA:FALSE",
            "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.pem",
        )  # fmt: skip
    return folder


def test_connections_are_encrypted_and_certificates_checked(new_server: Start, certificates: Path) -> None:
    files = [f"--tls-{key}-file" for key in ("ca-cert", "cert", "key")]
    paths = [str(certificates / name) for name in ("ca.pem", "server.pem", "server.key")]
    server = new_server("--tls-port", FREE, *(part for pair in zip(files, paths) for part in pair))
    address = f"rediss://127.0.0.1:{server.others[0]}/"
    trusting: quorlock.Settings = {"tls_ca": certificates / "ca.pem"}
    known: quorlock.Settings = {"tls_certificate": certificates / "client.pem", "tls_key": certificates / "client.key"}
    excludes(address, {**trusting, **known})
    # The server wants a certificate, and ours wants an authority that has signed the server's.
    cases: list[quorlock.Settings] = [trusting, known]
    for fewer in cases:
        with pytest.raises(quorlock.ConnectError) as caught:
            quorlock.Locks.connect(address, **fewer)
        assert caught.value.nodes
    named: quorlock.Settings = {**trusting, **known, "tls_server_name": "example.org"}
    with pytest.raises(quorlock.ConnectError, match="name"):
        quorlock.Locks.connect(address, **named)


def test_a_sentinel_group_leads_to_its_primary(new_server: Start, tmp_path: Path) -> None:
    primary = new_server()
    configuration = tmp_path / "sentinel.conf"
    configuration.write_text(f"sentinel monitor locks 127.0.0.1 {primary.port} 1\n")
    sentinel = new_server(configuration=configuration)
    address = f"redis+sentinel://127.0.0.1:{sentinel.port}/locks"
    excludes(address, {"sentinel_timeout": 2, "linger": 1})
    with quorlock.Locks.connect(address) as locks, locks.lock("orders/42"):
        assert "orders/42" in primary.keys()
    with pytest.raises(quorlock.ConnectError) as caught:
        quorlock.Locks.connect(f"redis+sentinel://127.0.0.1:{sentinel.port}/others")
    assert "others" in str(caught.value)


def test_a_cluster_and_a_majority_of_its_shards(new_server: Start, tmp_path: Path) -> None:
    nodes: list[Server] = []
    for number in range(3):
        (tmp_path / str(number)).mkdir()
        node = new_server("--cluster-enabled", "yes", "--cluster-port", FREE, "--dir", str(tmp_path / str(number)))
        nodes.append(node)
        nodes[0].ask("cluster", "meet", "127.0.0.1", str(node.port), str(node.others[0]))
        node.ask("cluster", "addslotsrange", str(number * 5462), str(min(16383, number * 5462 + 5461)))
    until(lambda: all("cluster_state:ok" in node.ask("cluster", "info") for node in nodes))
    address = f"redis+cluster://127.0.0.1:{nodes[0].port}"
    excludes(address, {})
    with quorlock.Locks.connect(address) as locks:
        with locks.all(["{shop}/1", "{shop}/2"]) as both:
            assert len(both.names) == 2
        # Each name has a slot, and the names of several slots are locked together on several servers.
        with locks.all([f"orders/{number}" for number in range(9)]):
            assert sum(bool(node.keys()) for node in nodes) == 3
    with quorlock.Locks.majority_of_shards(address, 3, trust_fresh_nodes=True) as locks, locks.lock("orders/42", wait=20):
        assert 2 <= locks.inspect("orders/42").nodes  # a majority: the third grants a little later


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """The address of a database of a server of its own."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not programs or os.geteuid() != 0 or shutil.which("runuser") is None:
        pytest.skip("PostgreSQL is not installed in Debian's place (tests/stores.sh installs it), or its user cannot be taken")
    port = free_port()
    folder = tempfile.mkdtemp()
    shutil.chown(folder, "postgres")
    as_user, binaries = ["runuser", "-u", "postgres", "--"], programs[-1]
    made = [*as_user, str(binaries / "initdb"), "-D", f"{folder}/data", "-A", "trust", "-N"]
    subprocess.run(made, check=True, capture_output=True, cwd="/")
    settings = ["-c", "listen_addresses=127.0.0.1", "-c", f"port={port}", "-c", f"unix_socket_directories={folder}", "-c", "fsync=off"]
    server = [*as_user, str(binaries / "postgres"), "-D", f"{folder}/data", *settings]
    process = subprocess.Popen(server, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")
    try:
        ready = [str(binaries / "pg_isready"), "-h", "127.0.0.1", "-p", str(port)]
        until(lambda: subprocess.run(ready, capture_output=True).returncode == 0)
        yield f"postgres://postgres:any@127.0.0.1:{port}/postgres"
    finally:
        # SIGINT ends its sessions at once. Its parent, runuser, passes no signal on.
        (pid,) = Path(f"{folder}/data/postmaster.pid").read_text().split()[:1]
        os.kill(int(pid), 2)
        process.wait(timeout=20)
        shutil.rmtree(folder)


def test_a_table_of_a_database(postgres: str) -> None:
    with pytest.raises(quorlock.ConnectError, match="init"):
        quorlock.Locks.connect(postgres)
    assert quorlock.Locks.init(postgres)
    assert "CREATE TABLE" in (quorlock.schema(postgres) or "").upper()
    excludes(postgres, {})


@pytest.fixture(scope="module")
def mariadb() -> Iterator[str]:
    """The address of a database of a server of its own."""
    program = Path("/usr/sbin/mariadbd")
    if not program.exists():
        pytest.skip("MariaDB is not installed: tests/stores.sh installs it")
    port = free_port()
    folder = Path(tempfile.mkdtemp())
    users = folder / "users"
    # A statement a line: no more is read of one.
    statements = ["CREATE DATABASE locks;", "CREATE USER locks@'127.0.0.1' IDENTIFIED BY 'right';", "GRANT ALL ON locks.* TO locks@'127.0.0.1';"]
    users.write_text("\n".join([*statements, ""]))
    common = ["--no-defaults", f"--datadir={folder}/data", f"--tmpdir={folder}", "--innodb-log-file-size=4M"]
    common += ["--user=root"] if os.geteuid() == 0 else []
    install = ["mariadb-install-db", *common, "--auth-root-authentication-method=normal", "--skip-test-db"]
    subprocess.run(install, check=True, capture_output=True)
    settings = [f"--port={port}", "--bind-address=127.0.0.1", "--skip-name-resolve", f"--socket={folder}/socket", f"--init-file={users}"]
    process = subprocess.Popen([str(program), *common, *settings], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until(lambda: listens(port), at_most=60)
        yield f"mysql://locks:right@127.0.0.1:{port}/locks"
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder)


def test_a_table_of_mariadb(mariadb: str) -> None:
    with pytest.raises(quorlock.ConnectError, match="init"):
        quorlock.Locks.connect(mariadb)
    assert quorlock.Locks.init(mariadb)
    assert "CREATE TABLE" in (quorlock.schema(mariadb) or "").upper()
    excludes(mariadb, {})
    with pytest.raises(quorlock.ConnectError) as caught:
        quorlock.Locks.connect(mariadb.replace("right", "wrong"))
    assert "wrong" not in str(caught.value)


class Store:
    """A server of etcd or ZooKeeper, which needs no table. Its output is a file of its folder."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.port = free_port()
        command = {"etcd": self._etcd, "zk": self._zookeeper}[kind](folder)
        self.address = f"{kind}://127.0.0.1:{self.port}"
        with (folder / "output").open("wb") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            quorlock.Locks.connect(self.address, wait_for_servers=90).close()
        except quorlock.ConnectError:
            self.end()
            raise

    def _etcd(self, folder: Path) -> list[str]:
        if shutil.which("etcd") is None:
            pytest.skip("etcd is not installed: tests/stores.sh installs it")
        own, peers = f"http://127.0.0.1:{self.port}", f"http://127.0.0.1:{free_port()}"
        clients = ["--listen-client-urls", own, "--advertise-client-urls", own]
        members = ["--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", f"default={peers}"]
        return ["etcd", "--data-dir", str(folder / "data"), *clients, *members]

    def _zookeeper(self, folder: Path) -> list[str]:
        library = Path("/usr/share/java/zookeeper.jar")
        if not library.exists() or shutil.which("java") is None:
            pytest.skip("ZooKeeper or Java is not installed: tests/stores.sh installs both")
        settings = ["tickTime=500", "admin.enableServer=false", f"dataDir={folder}/data", "clientPortAddress=127.0.0.1", f"clientPort={self.port}"]
        (folder / "zoo.cfg").write_text("\n".join([*settings, ""]))
        machine = ["java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", str(library)]
        return [*machine, "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(folder / "zoo.cfg")]

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module", params=["etcd", "zk"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    made = Store(request.param, tmp_path_factory.mktemp(request.param))
    yield made
    made.end()


def test_a_store_without_tables(store: Store) -> None:
    assert not quorlock.Locks.init(store.address)
    assert quorlock.schema(store.address) is None
    excludes(store.address, {})
    with quorlock.Locks.connect(f"{store.address}/shop") as shop, quorlock.Locks.connect(store.address) as others:
        with shop.lock("orders/42"), others.lock("orders/42", wait=20):
            assert others.inspect("orders/42").state == "held"


def test_a_release_wakes_a_waiter_of_a_store(store: Store) -> None:
    with quorlock.Locks.connect(store.address) as locks, quorlock.Locks.connect(store.address, poll_cap=60) as others:
        guard = locks.lock("woken").acquire()
        with pytest.raises(quorlock.AcquireError) as caught:
            others.lock("woken", wait=0.1).acquire()
        assert (caught.value.case, caught.value.kind) == ("contended", quorlock.ErrorKind.BUSY)
        tokens: list[int] = []
        waiter = threading.Thread(target=lambda: tokens.append(others.lock("woken", wait=50).acquire().token))
        waiter.start()
        waiter.join(timeout=0.2)
        guard.release()
        waiter.join(timeout=40)
        assert tokens and guard.token < tokens[0]


def test_a_holder_learns_that_its_store_stopped(store: Store) -> None:
    with quorlock.Locks.connect(store.address) as locks:
        guard = locks.lock("stopped", watchdog_lease=1).acquire()
        store.process.send_signal(signal.SIGSTOP)
        try:
            assert guard.lost.wait(timeout=20) is quorlock.Lost.UNREACHABLE
            with pytest.raises(quorlock.AcquireError) as caught:
                locks.lock("stopped", wait=0.5).acquire()
            assert caught.value.kind is quorlock.ErrorKind.UNAVAILABLE
            assert str(store.port) in caught.value.nodes[0]
        finally:
            store.process.send_signal(signal.SIGCONT)
        locks.lock("stopped", wait=40).acquire().release()


@pytest.mark.parametrize("kind", ["etcd", "zk", "postgres", "mysql"])
def test_a_store_that_is_not_there_is_named(kind: str) -> None:
    address = f"{kind}://user:secret@127.0.0.1:{free_port()}/locks"
    with pytest.raises(quorlock.ConnectError) as caught:
        quorlock.Locks.connect(address)
    assert caught.value.kind is quorlock.ErrorKind.UNAVAILABLE
    assert address.rpartition(":")[2].split("/")[0] in caught.value.nodes[0]
    assert "secret" not in str(caught.value)


def test_a_store_votes_beside_redis_servers(store: Store, new_server: Start) -> None:
    stays, killed = new_server(), new_server()
    with quorlock.Locks.quorum([stays.address, store.address, killed.address], trust_fresh_nodes=True) as locks:
        killed.kill()
        with locks.lock("voted", wait=20) as guard:
            assert locks.inspect("voted").nodes == 2
            with quorlock.Locks.connect(store.address) as alone:
                assert alone.inspect("voted").owner == guard.owner_id


@pytest.mark.parametrize("kind", ["etcd", "zk"])
def test_a_login_to_a_store_is_checked(kind: str, tmp_path: Path) -> None:
    server = Store(kind, tmp_path)
    place = f"127.0.0.1:{server.port}/own"
    try:
        if kind == "etcd":
            demand_logins(server)
        # In ZooKeeper, the znodes belong to the first user.
        excludes(f"{kind}://root:right@{place}", {})
        for login in ("", "root:hunter2@"):
            with pytest.raises(quorlock.ConnectError) as caught:
                quorlock.Locks.connect(f"{kind}://{login}{place}")
            assert caught.value.kind is quorlock.ErrorKind.MISCONFIGURED
            assert "hunter2" not in f"{caught.value} {caught.value.nodes}"
    finally:
        server.end()


def demand_logins(etcd: Store) -> None:
    """Makes a user of etcd, without whom it executes nothing from now on."""
    steps: list[tuple[str, dict[str, str]]] = [
        ("user/add", {"name": "root", "password": "right"}), ("role/add", {"name": "root"}),
        ("user/grant", {"user": "root", "role": "root"}), ("enable", {}),
    ]  # fmt: skip
    for path, fields in steps:
        url = f"http://127.0.0.1:{etcd.port}/v3/auth/{path}"
        urllib.request.urlopen(url, json.dumps(fields).encode(), timeout=20).close()
