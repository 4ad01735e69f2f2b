//! Executes one request: finds its records, puts it into their lines, and waits for the replies.

use std::sync::Arc;

use futures_util::future::{Either, join_all, select};
use quorlock_core::marker::{Act, Check, Process, Shown, ShownMarker};
use quorlock_core::message::{
    Acquire, ForceRelease, Inspect, Release, Renew, RenewReply, Reply, Request,
};
use quorlock_core::name::Name;
use quorlock_core::time::{Time, WallMillis};
use quorlock_core::transport::{Cause, Execution, TransportError};
use tokio::sync::oneshot;

use crate::desk::{Answer, Asked};
use crate::service::Service;
use crate::store::Key;

/// A request on its way to a store.
pub(crate) struct Execute {
    pub(crate) service: Arc<Service>,
    pub(crate) deadline: Time,
}

impl Execute {
    /// Executes a request and returns its reply.
    pub(crate) async fn request(&self, request: Request) -> Result<Reply, TransportError> {
        match request {
            Request::Renew(renew) => self.each_claim(renew).await,
            Request::Probe(check) => self.marker(check).await.map(Reply::Probe),
            Request::Acquire(Acquire {
                check: Some(check), ..
            }) => self.checked(request, check).await,
            Request::Acquire(Acquire { ref name, .. })
            | Request::Release(Release { ref name, .. })
            | Request::Inspect(Inspect { ref name, .. })
            | Request::ForceRelease(ForceRelease { ref name }) => {
                let key = key_of(name);
                Ok(self.in_line(&key, request).await?.0)
            }
        }
    }

    /// Renews each claim in its own record. The records are independent, so one that fails does not delay the others.
    async fn each_claim(&self, renew: Renew) -> Result<Reply, TransportError> {
        let count = renew.claims.len();
        let calls = renew.claims.into_iter().map(|claim| {
            let key = key_of(&claim.name);
            let request = Request::Renew(Renew {
                mode: renew.mode,
                claims: vec![claim],
                retention: renew.retention,
            });
            async move { self.in_line(&key, request).await }
        });
        let mut replies: Vec<RenewReply> = Vec::with_capacity(count);
        for result in join_all(calls).await {
            match result {
                Ok((Reply::Renew(reply), _)) => replies.extend(reply),
                Ok((other, _)) => unreachable!("BUG: a renewal was answered by {other:?}"),
                // The others of this call may have been executed.
                Err(error) if 1 < count => {
                    return Err(error.with_execution(Execution::Indeterminate));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Reply::Renew(replies))
    }

    /// Executes an acquire whose vote counts only if the store has a confirmed marker of the process that executes it.
    async fn checked(&self, request: Request, check: Check) -> Result<Reply, TransportError> {
        let Request::Acquire(acquire) = request else {
            unreachable!("BUG: only an acquire has a check")
        };
        let marker = Key::new(Key::MARKER);
        let look = Check {
            act: Act::Look,
            ..check
        };
        let lease_millis = acquire.lease.millis();
        let admits = |granted: Option<u64>| granted.is_some_and(|granted| lease_millis <= granted);
        if !admits(self.remembered_granted(&marker, check)) {
            // What is remembered may be old: the longest lease is raised by other clients.
            let shown = self.marker(look).await?;
            let granted = self.remembered_granted(&marker, check);
            if !admits(granted.or(Some(granted_millis(shown, check)))) {
                return Err(TransportError::definite(Cause::LongestLease, TOO_LONG));
            }
        }
        let key = key_of(&acquire.name);
        let acquire = Acquire {
            check: None,
            ..acquire
        };
        let (reply, process) = self.in_line(&key, Request::Acquire(acquire)).await?;
        let Reply::Acquire(reply) = reply else {
            unreachable!("BUG: an acquire was answered by {reply:?}")
        };
        // The marker is read after the claim was written, or the records could be deleted in between, with other
        // claims that their holders rely on, and the vote would count.
        let shown = self.marker(check).await;
        // The claim is there, so whatever fails now, the caller has to release it.
        let shown = shown.map_err(|error| error.with_execution(Execution::Indeterminate))?;
        let shown = match shown.process == process {
            true => shown,
            // Another server has taken over since, so its marker says nothing about this claim.
            false => Shown {
                process,
                marker: ShownMarker::Anothers,
            },
        };
        if granted_millis(shown, check) < lease_millis {
            return Err(TransportError::indeterminate(Cause::LongestLease, TOO_LONG));
        }
        Ok(Reply::Checked(reply, shown))
    }

    /// Returns the longest lease that the marker grants after this check, by what is remembered of it.
    fn remembered_granted(&self, marker: &Key, check: Check) -> Option<u64> {
        let mut seen = self.service.remembered.lock().get(marker).cloned()?;
        let probe = Request::Probe(check);
        let now = WallMillis::default();
        match seen.record.apply(seen.process, now, &probe) {
            Ok(Reply::Probe(shown)) => Some(granted_millis(shown, check)),
            _ => None,
        }
    }

    /// Executes the act of a check on the record of the marker.
    async fn marker(&self, check: Check) -> Result<Shown, TransportError> {
        let key = Key::new(Key::MARKER);
        match self.in_line(&key, Request::Probe(check)).await? {
            (Reply::Probe(shown), _) => Ok(shown),
            (other, _) => unreachable!("BUG: a probe was answered by {other:?}"),
        }
    }

    /// Puts a request into the line of its record, and waits for the reply until the deadline.
    async fn in_line(
        &self,
        key: &Key,
        request: Request,
    ) -> Result<(Reply, Process), TransportError> {
        let (answer, answered) = oneshot::channel();
        let asked = Asked {
            request,
            deadline: self.deadline,
            answer,
        };
        let service = &self.service;
        let place = service.desk.add(key, asked);
        if place.is_first {
            let task = service.clone().serve(key.clone());
            service.runtime.spawn(Box::pin(task));
        }
        let left = self.deadline.since(service.runtime.now());
        match select(answered, service.runtime.sleep(left)).await {
            Either::Left((Ok(answer), _)) => {
                let answer: Answer = answer;
                answer
            }
            Either::Left((Err(_), _)) => Err(TransportError::indeterminate(
                Cause::Closed,
                "the runtime has ended",
            )),
            Either::Right(_) => {
                let late = "no answer within the time-out of the call";
                Err(match service.desk.withdraw(key, place.number) {
                    true => TransportError::definite(Cause::TimedOut, late),
                    false => TransportError::indeterminate(Cause::TimedOut, late),
                })
            }
        }
    }
}

const TOO_LONG: &str = "the lease is longer than the store grants at present";

/// Returns the longest lease that is granted under this marker. Without one, the client's figures are written.
fn granted_millis(shown: Shown, check: Check) -> u64 {
    let figures = match shown.marker {
        ShownMarker::Own(_, _, figures) => figures,
        ShownMarker::Missing | ShownMarker::Anothers => check.figures,
    };
    figures.granted_millis
}

fn key_of(name: &Name) -> Key {
    Key::new(name.stem())
}
