//! The arguments of `check.lua`.

use quorlock_core::marker::{Act, Check, ConfirmedMarker, Restarts};
use redis::Cmd;

use super::wire;

/// Capacity for the marker's key and the arguments of a check, in bytes.
pub(super) const CHECK_BYTES: usize = 192;

/// Appends the arguments of `check.lua`, which are the last ones.
pub(super) fn encode_check(cmd: &mut Cmd, check: Check, lease_millis: u64) {
    let (act, nonce) = match check.act {
        Act::Look => ("look", 0),
        Act::Mark(nonce) => ("mark", nonce.get()),
        Act::MarkAnew(nonce) => ("anew", nonce.get()),
        Act::MarkFresh(nonce) => ("fresh", nonce.get()),
        Act::Confirm(nonce) => ("ripen", nonce.get()),
        Act::Restate => ("restate", 0),
    };
    match check.trusted.filter(|it| grants(*it, lease_millis)) {
        Some(trusted) => cmd.arg(marker_text(trusted)),
        None => cmd.arg(""),
    };
    match (check.restarts, check.known) {
        (Restarts::MayForget, _) => cmd.arg(""),
        (Restarts::KeepEverything, None) => cmd.arg("keep"),
        (Restarts::KeepEverything, Some(nonce)) => cmd.arg(format!("keep:{}", nonce.get())),
    };
    cmd.arg(act).arg(nonce);
    cmd.arg(wire(lease_millis));
    cmd.arg(check.figures.map(wire).to_string());
}

/// Whether a node with this marker grants the lease. The script does not compare them if the node has this marker.
pub(crate) fn grants(marker: ConfirmedMarker, lease_millis: u64) -> bool {
    wire(lease_millis) <= wire(marker.figures.granted_millis)
}

/// Formats a confirmed marker as it is stored.
pub(crate) fn marker_text(marker: ConfirmedMarker) -> String {
    let ConfirmedMarker {
        process,
        nonce,
        figures,
    } = marker;
    format!(
        "{:013x}:{}:{}:ripe",
        process.0,
        nonce.get(),
        figures.map(wire)
    )
}
