//! What refusals by one node show about the claims in the way.

use quorlock_core::claim_version::Observations;
use quorlock_core::message::{AcquireReply, Reply, Ttl};
use quorlock_core::name::Name;
use quorlock_core::round::Answer;
use quorlock_core::time::{Time, millis_of};
use quorlock_core::transport::{Cause, Execution, TransportError};

/// The answer to an acquire that a result amounts to.
pub(crate) fn answer(result: &Result<Reply, TransportError>) -> Answer {
    match result {
        Ok(Reply::Acquire(reply) | Reply::Checked(reply, _)) => Answer::from(*reply),
        Ok(_) => Answer::Failed(Execution::Indeterminate),
        Err(error) => Answer::Failed(error.execution),
    }
}

/// Whether this error proves that the server still has its claims. A server that is loading, has become a replica or
/// requires a login may be another one, or may have lost claims.
fn is_said_by_the_same(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::OutOfMemory
            | Cause::Busy
            | Cause::NoPermission
            | Cause::LongestLease
            | Cause::Misconfigured
            | Cause::NoReplicas
    )
}

/// Remembers what a refusal shows. Shortens its TTL if the claim in the way can be replaced before it expires.
pub(super) fn observe(
    observed: &mut Observations,
    now: Time,
    name: &Name,
    answer: Answer,
    result: &Result<Reply, TransportError>,
    is_quarantined: bool,
) -> Answer {
    let refusal = match result {
        Ok(Reply::Acquire(reply) | Reply::Checked(reply, _)) => match reply {
            AcquireReply::Refused { version, .. } => Some(*version),
            _ => None,
        },
        Ok(_) => None,
        Err(error) => {
            match error.cause {
                // This error concerns only the name.
                Cause::WrongType => observed.forget(name),
                cause if is_said_by_the_same(cause) => {}
                // The next answer may come from another server, whose claims were not observed.
                _ => observed.clear(),
            }
            return answer;
        }
    };
    let Some(version) = refusal else {
        observed.forget(name);
        return answer;
    };
    if is_quarantined {
        observed.clear();
        return answer;
    }
    match (observed.handle_refused(now, name, version), answer) {
        (Some(ends), Answer::Refused(ttl)) => {
            let left = Ttl::Millis(millis_of(ends.since(now)));
            Answer::Refused(ttl.min(left))
        }
        _ => answer,
    }
}
