//! What the stores in databases that are servers have in common, and etcd with them.

#[cfg(any(feature = "mysql", feature = "postgres"))]
use std::future::Future;
#[cfg(any(feature = "mysql", feature = "postgres"))]
use std::time::Duration;

use quorlock_core::marker::Process;
use quorlock_core::transport::{Cause, Execution, TransportError};
#[cfg(any(feature = "mysql", feature = "postgres"))]
use tokio::time::timeout;

use crate::address::AddressError;

/// What was done when an error came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// A connection was made: nothing of the call was sent.
    Connect,
    Read,
    Write,
}

impl Phase {
    /// Returns the error of a call, which was not executed if it was `refused`, or if it only reads.
    pub(crate) fn error(
        self,
        refused: bool,
        (cause, advice): (Cause, Option<&'static str>),
        detail: String,
    ) -> TransportError {
        let execution = match self == Phase::Write && !refused {
            true => Execution::Indeterminate,
            false => Execution::Definite,
        };
        let failed = TransportError::new(execution, cause, detail);
        match advice {
            Some(advice) => failed.advised(advice),
            None => failed,
        }
    }
}

/// What to do where a connection cannot be made.
#[cfg(any(
    feature = "mongodb",
    feature = "mysql",
    feature = "postgres",
    feature = "s3"
))]
pub(crate) const UNREACHABLE: &str = "check that the server runs, and that its address is right";

/// How long a server may take until it has accepted a client.
#[cfg(any(feature = "mysql", feature = "postgres"))]
const ACCEPTED: Duration = Duration::from_secs(5);

/// Waits until a server has accepted a client, but not for ever: a server of another kind waits for words that it knows.
#[cfg(any(feature = "mysql", feature = "postgres"))]
#[expect(
    clippy::disallowed_methods,
    reason = "the drivers have no such time-out"
)]
pub(crate) async fn accepted<T>(
    kind: &str,
    connecting: impl Future<Output = Result<T, TransportError>>,
) -> Result<T, TransportError> {
    timeout(ACCEPTED, connecting).await.unwrap_or_else(|_| {
        let detail = format!("what is at this port does not answer as {kind} does in {ACCEPTED:?}");
        let late = TransportError::definite(Cause::TimedOut, detail);
        Err(late.advised("check the host and the port of the address; Redis has the port 6379"))
    })
}

/// What a user of the database must be allowed to do.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) const RIGHTS: &str = "the user needs SELECT, INSERT, UPDATE and DELETE on the table quorlock; to make it, CREATE on its schema";

/// Returns the error of a server that takes no writes.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) fn read_only(advice: &'static str) -> TransportError {
    TransportError::definite(Cause::ReadOnly, "it takes no writes").advised(advice)
}

/// Checks what an address begins with, and that no part of a password can be taken for another part: those are shown in
/// errors and logs.
pub(crate) fn check_address(
    address: &str,
    schemes: &[&str],
    form: &'static str,
) -> Result<(), AddressError> {
    if !schemes.iter().any(|scheme| address.starts_with(scheme)) {
        let scheme = schemes.first().copied().unwrap_or_default();
        return Err(AddressError::new(
            form,
            format!("does not begin with {scheme}"),
        ));
    }
    if 1 < address.matches('@').count() {
        return Err(AddressError::new(form, ENCODE));
    }
    Ok(())
}

/// What is wrong with a password that is not encoded.
pub(crate) const ENCODE: &str = "has an @ in the wrong place: write %40 for one in a password, %2F for /, %3F for ?, %23 for # and %25 for %";

/// Returns the process of one server, or one history, of a system. The part is a small number, and the numbers of two systems differ
/// in their first bits.
pub(crate) fn process_of(system: u64, part: u64) -> Process {
    Process((system ^ part.wrapping_mul(0x9e37_79b9_7f4a_7c15)) >> 12)
}
