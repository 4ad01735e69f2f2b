//! Encodes requests for read-write locks as script calls.

use std::sync::LazyLock;

use quorlock_core::message::{Acquire, Claim, Release, Renew};
use quorlock_core::owner::OwnerId;
use redis::Cmd;

use super::check::{CHECK_BYTES, encode_check};
use super::{
    By, CLAIM_BYTES, Home, Publishing, Script, command, encode_continues, fence, kept, owner, wire,
};
use crate::key;

static READ_ACQUIRE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(undeclared!(lua!(
        "shared/clock",
        "shared/counter",
        "read_acquire"
    )))
});
static CHECKED_READ_ACQUIRE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(undeclared!(around!(
        "check",
        lua!("shared/clock", "shared/counter", "read_acquire")
    )))
});
static CHECKED_WRITE_ACQUIRE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(undeclared!(around!(
        "check",
        lua!("shared/clock", "shared/counter", "write_acquire")
    )))
});
static READ_RENEW: LazyLock<Script> =
    LazyLock::new(|| Script::new(undeclared!(lua!("shared/look", "read_renew"))));
static READ_RELEASE: LazyLock<Publishing> =
    LazyLock::new(|| publishing!(undeclared!(lua!("read_release"))));
static WRITE_ACQUIRE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(undeclared!(lua!(
        "shared/clock",
        "shared/counter",
        "write_acquire"
    )))
});
static CONTINUING_WRITE_ACQUIRE: LazyLock<Script> =
    LazyLock::new(|| Script::new(undeclared!(continuing!("write_acquire"))));
static CHECKED_CONTINUING_WRITE_ACQUIRE: LazyLock<Script> =
    LazyLock::new(|| Script::new(undeclared!(around!("check", continuing!("write_acquire")))));
static WRITE_RENEW: LazyLock<Script> = LazyLock::new(|| {
    Script::new(lua!(
        "shared/clock",
        "shared/counter",
        "shared/retention",
        "shared/look",
        "write_renew"
    ))
});
static WRITE_RELEASE: LazyLock<Publishing> =
    LazyLock::new(|| publishing!(undeclared!(lua!("write_release"))));

pub(super) fn encode_read(ask: &Acquire, under: Option<OwnerId>, home: &Home, by: By) -> Cmd {
    let name = &ask.name;
    let (script, keys) = match ask.check {
        None => (&READ_ACQUIRE, 2),
        Some(_) => (&CHECKED_READ_ACQUIRE, 3),
    };
    let bytes = 3 * name.as_bytes().len() + 2 * CLAIM_BYTES + CHECK_BYTES;
    let mut cmd = command(script, by, keys, 9, bytes);
    cmd.arg(name.as_bytes()).arg(key::token(name));
    if ask.check.is_some() {
        cmd.arg(home.marker(name.split().0));
    }
    owner(&mut cmd, ask.owner);
    cmd.arg(ask.count)
        .arg(wire(ask.kept_millis()))
        .arg(key::own_leases(name, ask.owner))
        .arg(under.map(key::writer).unwrap_or_default());
    if let Some(check) = ask.check {
        encode_check(&mut cmd, check, ask.lease.millis());
    }
    cmd
}

pub(super) fn encode_write(ask: &Acquire, home: &Home, by: By) -> Cmd {
    let name = &ask.name;
    let (script, keys) = match (ask.check, ask.continues) {
        (None, None) => (&WRITE_ACQUIRE, 2),
        (Some(_), None) => (&CHECKED_WRITE_ACQUIRE, 3),
        (None, Some(_)) => (&CONTINUING_WRITE_ACQUIRE, 2),
        (Some(_), Some(_)) => (&CHECKED_CONTINUING_WRITE_ACQUIRE, 3),
    };
    let bytes = 3 * name.as_bytes().len() + 3 * CLAIM_BYTES + CHECK_BYTES;
    let mut cmd = command(script, by, keys, 16, bytes);
    cmd.arg(name.as_bytes()).arg(key::token(name));
    if ask.check.is_some() {
        cmd.arg(home.marker(name.split().0));
    }
    if let Some(before) = ask.continues {
        cmd.arg(key::writer(before));
        encode_continues(&mut cmd, ask);
    }
    cmd.arg(key::writer(ask.owner))
        .arg(ask.count)
        .arg(wire(ask.kept_millis()))
        .arg(kept(ask.retention))
        .arg(key::leases(name));
    fence(&mut cmd, ask.fence);
    if let Some(check) = ask.check {
        encode_check(&mut cmd, check, ask.lease.millis());
    }
    cmd
}

/// Capacity for claims whose names are each written `times` times, in bytes.
fn room(claims: &[Claim], times: usize) -> usize {
    let names = claims.iter().map(|claim| claim.name.as_bytes().len());
    names.map(|len| times * len + 2 * CLAIM_BYTES).sum()
}

pub(super) fn encode_read_renew(ask: &Renew, by: By) -> Cmd {
    let claims = ask.claims.len();
    let bytes = room(&ask.claims, 2);
    let mut cmd = command(&READ_RENEW, by, claims, 5 * claims, bytes);
    for claim in &ask.claims {
        cmd.arg(claim.name.as_bytes());
    }
    for claim in &ask.claims {
        owner(&mut cmd, claim.owner);
        cmd.arg(claim.count)
            .arg(wire(claim.kept_millis()))
            .arg(claim.token.0)
            .arg(key::own_leases(&claim.name, claim.owner));
    }
    cmd
}

pub(super) fn encode_write_renew(ask: &Renew, by: By) -> Cmd {
    let claims = ask.claims.len();
    let bytes = room(&ask.claims, 2);
    let mut cmd = command(&WRITE_RENEW, by, 2 * claims, 1 + 4 * claims, bytes);
    for claim in &ask.claims {
        let name = &claim.name;
        cmd.arg(name.as_bytes()).arg(key::token(name));
    }
    cmd.arg(kept(ask.retention));
    for claim in &ask.claims {
        cmd.arg(key::writer(claim.owner))
            .arg(claim.count)
            .arg(wire(claim.kept_millis()))
            .arg(claim.token.0);
    }
    cmd
}

pub(super) fn encode_read_release(ask: &Release, home: &Home, by: By) -> Cmd {
    let name = &ask.name;
    let mut cmd = command(
        READ_RELEASE.at(home),
        by,
        1,
        4,
        3 * name.as_bytes().len() + 2 * CLAIM_BYTES,
    );
    cmd.arg(name.as_bytes());
    owner(&mut cmd, ask.owner);
    cmd.arg(ask.count)
        .arg(key::leases(name))
        .arg(key::read_write_channel(name));
    cmd
}

pub(super) fn encode_write_release(ask: &Release, home: &Home, by: By) -> Cmd {
    let name = &ask.name;
    let mut cmd = command(
        WRITE_RELEASE.at(home),
        by,
        1,
        4,
        3 * name.as_bytes().len() + 2 * CLAIM_BYTES,
    );
    cmd.arg(name.as_bytes())
        .arg(key::writer(ask.owner))
        .arg(ask.count)
        .arg(key::leases(name))
        .arg(key::read_write_channel(name));
    cmd
}
