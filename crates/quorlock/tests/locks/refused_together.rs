//! Renewals of many holds in one request, which fails because of one of them.

#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test is the world: it waits by itself, and fails by panicking"
)]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quorlock::transport::{Call, Cause, Execution, Intercept, Request, Transport, TransportError};
use quorlock::{EmbeddedNode, Guard, Locks};
use tokio::time::sleep;

const LEASE: Duration = Duration::from_secs(3);

/// More holds than one renewal has.
const MANY: usize = 150;

/// A node that fails every renewal with this error if it has the name `many:70`, or any name.
#[derive(Clone, Debug)]
struct Refusing {
    node: EmbeddedNode,
    error: TransportError,
    of: Of,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Of {
    OneName,
    AnyName,
}

#[derive(Default, Debug)]
struct Seen {
    /// The number of renewals.
    renewals: usize,
    /// The owner and the number of each claim in them.
    statements: BTreeSet<(String, u64)>,
}

impl Refusing {
    fn new(execution: Execution, cause: Cause, of: Of) -> Self {
        Refusing {
            node: EmbeddedNode::new(),
            error: TransportError::new(execution, cause, "refused"),
            of,
            seen: Arc::default(),
        }
    }
}

impl Refusing {
    fn transport(&self) -> Intercept<EmbeddedNode> {
        let refusing = self.clone();
        Intercept::new(self.node.clone()).on_call(move |_, request| refusing.call(request))
    }

    fn call(&self, request: Request) -> Call {
        let Request::Renew(ask) = &request else {
            return self.node.call(request);
        };
        let mut seen = self.seen.lock().unwrap();
        seen.renewals += 1;
        for claim in &ask.claims {
            let number = claim.keep.unwrap().number;
            let is_new = seen.statements.insert((claim.owner.to_string(), number));
            assert!(is_new, "two requests with the number {number}");
        }
        let is_met = |name: &[u8]| self.of == Of::AnyName || name == b"many:70";
        if !ask.claims.iter().any(|claim| is_met(claim.name.as_bytes())) {
            return self.node.call(request);
        }
        let error = self.error.clone();
        let executed = match error.execution {
            Execution::Definite => None,
            // The claims before the strange one, and after it.
            Execution::Indeterminate => Some(self.node.call(request)),
        };
        Box::pin(async move {
            if let Some(executed) = executed {
                let _ = executed.await;
            }
            Err(error)
        })
    }
}

async fn hold(node: &Refusing) -> Vec<Guard> {
    let builder = Locks::builder().watchdog_lease(LEASE);
    let locks = builder
        .clock_margin(LEASE)
        .on_node(node.transport())
        .unwrap();
    let mut guards = Vec::new();
    for number in 0..MANY {
        let lock = locks.lock(format!("many:{number}"));
        guards.push(lock.acquire().await.unwrap());
    }
    guards
}

fn held(guards: &[Guard]) -> Vec<usize> {
    let held = guards.iter().enumerate();
    held.filter(|(_, guard)| guard.is_held())
        .map(|(number, _)| number)
        .collect()
}

#[tokio::test(start_paused = true)]
async fn one_refused_name_is_lost_and_no_other() {
    let others: Vec<usize> = (0..MANY).filter(|number| *number != 70).collect();
    for cause in [
        Cause::NoPermission,
        Cause::WrongType,
        Cause::OutOfMemory,
        Cause::Cluster,
        Cause::Server,
        Cause::Protocol,
    ] {
        for execution in [Execution::Definite, Execution::Indeterminate] {
            let guards = hold(&Refusing::new(execution, cause, Of::OneName)).await;
            sleep(3 * LEASE).await;
            assert_eq!(held(&guards), others, "{cause:?}, {execution:?}");
        }
    }
}

/// Another request for each claim would only burden a server that answers none of them.
#[tokio::test(start_paused = true)]
async fn what_concerns_the_whole_server_is_not_asked_again_for_each_name() {
    for cause in [
        Cause::Unreachable,
        Cause::TimedOut,
        Cause::ReadOnly,
        Cause::Loading,
        Cause::Busy,
        Cause::NoAuth,
        Cause::Misconfigured,
        Cause::NoReplicas,
        Cause::NotReplicated,
    ] {
        let node = Refusing::new(Execution::Definite, cause, Of::AnyName);
        let guards = hold(&node).await;
        sleep(2 * LEASE).await;
        assert!(held(&guards).is_empty(), "{cause:?}");
        // Two thirds of a lease have ten fifteenths, and all claims are in two requests.
        let renewals = node.seen.lock().unwrap().renewals;
        assert!(renewals <= 2 * 11, "{cause:?}: {renewals}");
    }
}
