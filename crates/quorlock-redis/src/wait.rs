//! How far a write must be replicated or persisted before it counts: `WAIT` and `WAITAOF`.

use std::time::Duration;

use quorlock_core::message::{AcquireReply, RenewReply, Reply};
use quorlock_core::time::millis_of;
use quorlock_core::transport::{Cause, Execution, TransportError};
use redis::{Cmd, Value};

use crate::error;
use crate::failure;
use crate::timer;

/// The number of replicas that must have a claim before a grant or a renewal counts.
///
/// After a script that granted or renewed, `WAIT` (or `WAITAOF`) is sent on the same connection, because it covers the
/// writes of that connection. If too few replicas confirm in time, the call fails as indeterminate: a round releases
/// the claim, and a hold is not extended. Losing a lock by a failover becomes rarer, but not impossible: the promoted
/// replica may be one that did not confirm.
///
/// While the server waits, it reads nothing else from the connection, so calls for other locks wait, too.
///
/// ```
/// use quorlock_redis::{RedisConfig, Wait};
/// use std::time::Duration;
///
/// let config = RedisConfig::default().wait(Wait::replicas(1, Duration::from_millis(50)));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wait {
    replicas: u32,
    within: Duration,
    reached: Reached,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reached {
    Memory,
    Disk,
}

impl Wait {
    /// Requires `replicas` replicas to have the write in memory (`WAIT`) within this time. The time should be much
    /// shorter than the member time-out and the call time-out.
    #[must_use]
    pub fn replicas(replicas: u32, within: Duration) -> Self {
        Wait {
            replicas,
            within: within
                .max(Duration::from_millis(1))
                .min(timer::LONGEST_SPAN),
            reached: Reached::Memory,
        }
    }

    /// Requires the server itself and the replicas to have the write on disk (`WAITAOF`, Redis 7.2 and newer, with
    /// `appendonly yes`).
    #[must_use]
    pub fn on_disk(mut self) -> Self {
        self.reached = Reached::Disk;
        self
    }

    /// The longest time for which the server waits.
    pub(crate) fn within(&self) -> Duration {
        self.within
    }

    /// Whether writes must be on disk, which needs `WAITAOF`.
    pub(crate) fn needs_disk(&self) -> bool {
        self.reached == Reached::Disk
    }

    /// Returns the command to send after the script. Its time-out is at least 1 ms, because 0 would mean no time-out.
    pub(crate) fn command(&self) -> Cmd {
        let mut cmd = match self.reached {
            Reached::Memory => redis::cmd("WAIT"),
            Reached::Disk => {
                let mut cmd = redis::cmd("WAITAOF");
                cmd.arg(1);
                cmd
            }
        };
        cmd.arg(self.replicas).arg(millis_of(self.within));
        cmd
    }

    /// Checks the reply: whether the write is replicated and persisted as required.
    ///
    /// # Errors
    /// An indeterminate error: the script has written, but the write may be lost.
    pub(crate) fn judge(&self, answer: &Value) -> Result<(), TransportError> {
        let (is_on_disk, replicas) = match (self.reached, answer) {
            (_, Value::ServerError(refusal)) => {
                return Err(error::server(refusal).with_execution(Execution::Indeterminate));
            }
            (Reached::Memory, Value::Int(replicas)) => (true, *replicas),
            (Reached::Disk, Value::Array(parts)) => match parts.as_slice() {
                [Value::Int(local), Value::Int(replicas)] => (0 < *local, *replicas),
                _ => return Err(error::no_reply("the reply to WAITAOF")),
            },
            _ => return Err(error::no_reply("the reply to WAIT")),
        };
        if is_on_disk && i64::from(self.replicas) <= replicas {
            return Ok(());
        }
        let place = match self.reached {
            Reached::Memory => "",
            Reached::Disk if is_on_disk => " on their disks",
            Reached::Disk => " on their disks, and the server does not",
        };
        Err(failure::indeterminate(
            Cause::NotReplicated,
            format!(
                "{replicas} of {} replicas had it{place} within {:?}",
                self.replicas, self.within
            ),
        ))
    }
}

/// Whether a client relies on what the request wrote. A refusal wrote nothing. If a release is lost, the claim exists
/// again and then expires.
pub(crate) fn is_relied_upon(reply: &Reply) -> bool {
    match reply {
        Reply::Acquire(reply) | Reply::Checked(reply, _) => {
            matches!(reply, AcquireReply::Granted { .. })
        }
        Reply::Renew(replies) => replies
            .iter()
            .any(|reply| matches!(reply, RenewReply::AlreadyYours { .. })),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(wait: &Wait) -> String {
        let packed = wait.command().get_packed_command();
        String::from_utf8(packed).unwrap().replace("\r\n", " ")
    }

    #[test]
    fn a_time_out_of_nothing_would_wait_for_ever() {
        let wait = Wait::replicas(2, Duration::ZERO);
        assert_eq!(words(&wait), "*3 $4 WAIT $1 2 $1 1 ");
        let wait = Wait::replicas(1, Duration::from_millis(70)).on_disk();
        assert_eq!(words(&wait), "*4 $7 WAITAOF $1 1 $1 1 $2 70 ");
    }

    #[test]
    fn enough_replicas_must_have_it() {
        let memory = Wait::replicas(2, Duration::from_millis(5));
        assert_eq!(memory.judge(&Value::Int(2)), Ok(()));
        assert_eq!(memory.judge(&Value::Int(3)), Ok(()));
        let error = memory.judge(&Value::Int(1)).unwrap_err();
        assert_eq!(error.execution, Execution::Indeterminate);
        assert_eq!(error.cause, Cause::NotReplicated);
        assert_eq!(error.detail, "1 of 2 replicas had it within 5ms");

        let disk = memory.on_disk();
        let answered = |local, replicas| {
            disk.judge(&Value::Array(vec![Value::Int(local), Value::Int(replicas)]))
        };
        assert_eq!(answered(1, 2), Ok(()));
        assert!(answered(0, 2).is_err() && answered(1, 1).is_err());
        assert!(disk.judge(&Value::Int(2)).is_err());
    }
}
