//! Encodes requests for fair locks as script calls.

use std::sync::LazyLock;

use quorlock_core::message::{Acquire, QueuePlace, Release};
use redis::Cmd;

use super::check::{CHECK_BYTES, encode_check};
use super::{
    By, CLAIM_BYTES, Home, Publishing, Script, command, encode_continues, fence, kept, owner, wire,
};
use crate::key;

static ACQUIRE: LazyLock<Publishing> = LazyLock::new(|| {
    publishing!(lua!(
        "shared/clock",
        "shared/counter",
        "shared/queue",
        "fair_acquire"
    ))
});
static CHECKED_ACQUIRE: LazyLock<Publishing> = LazyLock::new(|| {
    publishing!(around!(
        "check",
        lua!(
            "shared/clock",
            "shared/counter",
            "shared/queue",
            "fair_acquire"
        )
    ))
});
static CONTINUING_ACQUIRE: LazyLock<Publishing> =
    LazyLock::new(|| publishing!(continuing!("shared/queue", "fair_acquire")));
static CHECKED_CONTINUING_ACQUIRE: LazyLock<Publishing> = LazyLock::new(|| {
    publishing!(around!(
        "check",
        continuing!("shared/queue", "fair_acquire")
    ))
});
static RELEASE: LazyLock<Publishing> =
    LazyLock::new(|| publishing!(lua!("shared/clock", "shared/queue", "fair_release")));

pub(super) fn encode_acquire(ask: &Acquire, place: QueuePlace, home: &Home, by: By) -> Cmd {
    let name = &ask.name;
    let (script, keys) = match (ask.check, ask.continues) {
        (None, None) => (&ACQUIRE, 5),
        (Some(_), None) => (&CHECKED_ACQUIRE, 6),
        (None, Some(_)) => (&CONTINUING_ACQUIRE, 5),
        (Some(_), Some(_)) => (&CHECKED_CONTINUING_ACQUIRE, 6),
    };
    let bytes = 6 * name.as_bytes().len() + 3 * CLAIM_BYTES + CHECK_BYTES;
    let mut cmd = command(script.at(home), by, keys, 17, bytes);
    cmd.arg(name.as_bytes())
        .arg(key::token(name))
        .arg(key::queue(name))
        .arg(key::timeouts(name))
        .arg(key::alive(name));
    if ask.check.is_some() {
        cmd.arg(home.marker(name.split().0));
    }
    if let Some(before) = ask.continues {
        owner(&mut cmd, before);
        encode_continues(&mut cmd, ask);
    }
    owner(&mut cmd, ask.owner);
    cmd.arg(ask.count)
        .arg(wire(ask.lease.millis()))
        .arg(kept(ask.retention))
        .arg(match place {
            QueuePlace::None => 0,
            QueuePlace::Kept { millis } => wire(millis).max(1),
        })
        .arg(key::channel(name));
    fence(&mut cmd, ask.fence);
    if let Some(check) = ask.check {
        encode_check(&mut cmd, check, ask.lease.millis());
    }
    cmd
}

pub(super) fn encode_release(ask: &Release, home: &Home, by: By) -> Cmd {
    let name = &ask.name;
    let mut cmd = command(
        RELEASE.at(home),
        by,
        4,
        3,
        5 * name.as_bytes().len() + 2 * CLAIM_BYTES,
    );
    cmd.arg(name.as_bytes())
        .arg(key::queue(name))
        .arg(key::timeouts(name))
        .arg(key::alive(name));
    owner(&mut cmd, ask.owner);
    cmd.arg(ask.count).arg(key::channel(name));
    cmd
}
