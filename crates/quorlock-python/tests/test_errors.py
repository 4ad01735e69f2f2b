"""Bad input, and what errors tell."""

from __future__ import annotations

import asyncio
import pickle
from datetime import timedelta
from typing import Any, Callable

import pytest
from servers import Server

import quorlock
import quorlock.asyncio
from quorlock._settings import Settings

BAD_SETTINGS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"watchdog_lease": -1}, quorlock.ConfigError, "watchdog_lease: -1 s is not a span"),
    ({"watchdog_lease": float("nan")}, quorlock.ConfigError, "watchdog_lease: NaN s"),
    ({"watchdog_lease": float("inf")}, quorlock.ConfigError, "watchdog_lease: inf s"),
    ({"watchdog_lease": timedelta(days=-1)}, quorlock.ConfigError, "watchdog_lease"),
    ({"watchdog_lease": 0}, quorlock.ConfigError, "watchdog_lease"),
    ({"watchdog_lease": 61}, quorlock.ConfigError, "longest_lease"),
    ({"watchdog_lease": "10"}, TypeError, "watchdog_lease: a span of time is a number of seconds"),
    ({"watchdog_leese": 10}, TypeError, "there is no setting watchdog_leese"),
    ({"node_trust": "blind"}, quorlock.ConfigError, "node_trust: \"blind\" is none of"),
    ({"key_prefix": 7}, TypeError, "key_prefix: a name is str or bytes"),
    ({"user": "jobs"}, quorlock.ConfigError, "user needs password"),
    ({"password": "a", "password_file": "b"}, quorlock.ConfigError, "exclude each other"),
    ({"tls_certificate": "c.pem"}, quorlock.ConfigError, "tls_certificate needs tls_key"),
    ({"replicas": 1}, quorlock.ConfigError, "replicas needs replicas_within"),
    ({"replicas": -1, "replicas_within": 1}, quorlock.ConfigError, "replicas: out of range"),
    ({"on_disk": True}, quorlock.ConfigError, "on_disk needs replicas"),
]


@pytest.mark.parametrize(("settings", "error", "words"), BAD_SETTINGS, ids=[str(case[0]) for case in BAD_SETTINGS])
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        quorlock.Locks.embedded(**settings)


def test_every_setting_that_is_documented_is_known() -> None:
    """A value of a wrong type is refused with the name of the setting, so the library knows it."""
    for name in Settings.__annotations__:
        with pytest.raises((TypeError, ValueError), match=name) as caught:
            wrong: Any = {name: object()}
            quorlock.Locks.embedded(**wrong)
        assert "there is no setting" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "error"),
    [("", quorlock.ConfigError), ("a\0b", quorlock.ConfigError), ("a" * 513, quorlock.ConfigError), (7, TypeError)],
    ids=["empty", "nul", "long", "number"],
)
def test_names_that_cannot_be_are_refused(name: Any, error: type[Exception]) -> None:
    with quorlock.Locks.embedded() as locks:
        with pytest.raises(error):
            locks.lock(name).acquire()
        with pytest.raises(error):
            locks.inspect(name)


def test_a_lock_that_cannot_be_is_refused_when_it_is_acquired() -> None:
    nodes = [quorlock.EmbeddedNode() for _ in range(3)]
    with quorlock.Locks.embedded(*nodes, trust_fresh_nodes=True) as locks:
        for lock in (locks.fair("a"), locks.all([]), locks.lock("a", lease=61), locks.lock("a", lease=10, at_least=20)):
            with pytest.raises(quorlock.ConfigError):
                lock.acquire()
        with pytest.raises(quorlock.ConfigError):
            locks.semaphore("a", 0).acquire()
        with pytest.raises(OverflowError):
            locks.semaphore("a", -1)
        with pytest.raises(quorlock.ConfigError, match="exclude each other"):
            locks.lock("a", lease=1, watchdog_lease=1)


def test_a_name_has_one_mode() -> None:
    with quorlock.Locks.embedded() as locks, locks.read("a"):
        with pytest.raises(quorlock.AcquireError) as caught:
            locks.lock("a").acquire()
        assert (caught.value.case, caught.value.kind) == ("other_mode", quorlock.ErrorKind.MISCONFIGURED)


@pytest.mark.parametrize("address", ["", "nonsense", "http://127.0.0.1/", "redis://127.0.0.1:99999/", "etcd://", "zk://h/?a=1"])
def test_addresses_that_cannot_be_are_refused(address: str) -> None:
    with pytest.raises(quorlock.ConnectError) as caught:
        quorlock.Locks.connect(address)
    assert caught.value.kind is quorlock.ErrorKind.MISCONFIGURED


def test_an_error_of_a_scheme_speaks_of_no_build() -> None:
    """The wheel has every store, so the error names no feature of a build."""
    with pytest.raises(quorlock.ConnectError, match=r"etcd://, mongodb://, mysql://, postgres://, s3://, sqlite: or zk://$"):
        quorlock.Locks.connect("cassandra://127.0.0.1/locks")


def test_one_address_is_not_taken_for_its_letters() -> None:
    one: Any = "redis://127.0.0.1/"
    with pytest.raises(TypeError, match="not one address"):
        quorlock.Locks.quorum(one)
    with pytest.raises(TypeError, match="not one address"):
        asyncio.run(quorlock.asyncio.Locks.quorum(one))


@pytest.mark.parametrize("term", ["wait", "lease", "watchdog_lease", "at_least"])
def test_terms_that_cannot_be_are_named(term: str) -> None:
    negative: dict[str, Any] = {term: -1}
    text: dict[str, Any] = {term: "3"}
    not_one = f"^{term}: a span of time is a number of seconds or a timedelta, not str"
    with quorlock.Locks.embedded() as locks:
        with pytest.raises(quorlock.ConfigError, match=f"^{term}: -1 s is not a span"):
            locks.lock("a", **negative)
        with pytest.raises(TypeError, match=not_one):
            locks.lock("a", **text)
        with pytest.raises(TypeError, match=not_one):
            locks.semaphore("a", 2, **text)


def test_a_server_is_given_once(server: Server) -> None:
    addresses = [server.address, server.address.replace("127.0.0.1", "localhost")]
    with pytest.raises(quorlock.ConfigError, match="same server"):
        quorlock.Locks.quorum(addresses)
    with pytest.raises(quorlock.ConfigError):
        quorlock.Locks.quorum([])


def test_a_login_that_is_refused_tells_no_password(new_server: Callable[..., Server]) -> None:
    server = new_server("--requirepass", "the right one")
    address = f"redis://:hunter2@127.0.0.1:{server.port}/"
    with pytest.raises(quorlock.ConnectError) as caught:
        quorlock.Locks.connect(address)
    assert caught.value.kind is quorlock.ErrorKind.MISCONFIGURED
    with pytest.raises(quorlock.ConnectError) as other:
        quorlock.Locks.connect(server.address, password="hunter2")
    for error in (caught.value, other.value):
        assert "hunter2" not in f"{error} {error!r} {error.nodes} {error.__dict__}"
    with quorlock.Locks.connect(server.address, password="the right one", user="default") as locks:
        for made in (locks, locks.lock("a"), locks.lock("a").acquire(), locks.owner()):
            assert "the right one" not in repr(made)


def test_errors_are_one_family_and_travel_between_processes() -> None:
    with quorlock.Locks.embedded() as locks, locks.lock("a"):
        with pytest.raises(quorlock.QuorlockError) as caught:
            locks.lock("a", wait=0.01).acquire()
    error = pickle.loads(pickle.dumps(caught.value))
    assert type(error) is quorlock.AcquireError
    assert (str(error), error.kind, error.case) == (str(caught.value), quorlock.ErrorKind.BUSY, "contended")
    assert error.kind.http_status == 409
    assert quorlock.ErrorKind.UNAVAILABLE.http_status == 503
    assert quorlock.ErrorKind.MISCONFIGURED.http_status == 500
    family = [getattr(quorlock, name) for name in quorlock.__all__ if name.endswith("Error")]
    assert len(family) == 10
    assert all(issubclass(error, quorlock.QuorlockError) for error in family)


def test_objects_say_what_they_are() -> None:
    with quorlock.Locks.embedded() as locks:
        assert repr(locks.lock("orders/42")) == "<Lock orders/42>"
        assert repr(locks.semaphore("printers", 3)) == "<Semaphore printers, 3 permits>"
        with locks.all(["a", "b"]) as guard:
            assert repr(guard) == f"<Guard of a, b, held, token {guard.token}>"
        assert repr(guard) == f"<Guard of a, b, released, token {guard.token}>"
