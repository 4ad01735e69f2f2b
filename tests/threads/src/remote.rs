//! A node at the other end of a network, and the requests that were sent to it.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};

use quorlock::runtime::Runtime;
use quorlock::transport::{Call, Intercept, Request, Transport};
use quorlock::{EmbeddedNode, Name, OwnerId};
use quorlock_core::claim_version::ClockMargin;

use crate::mailbox::Mailbox;
use crate::world::World;

/// How requests get to a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// Requests are executed within the poll of the caller.
    Near,
    /// Requests are executed in separate tasks, when the schedule runs them. A later request may arrive earlier.
    Far,
}

/// An embedded node, its network, and a check of its requests: of two requests for one claim, the one with the larger
/// number does not state a shorter lease.
#[derive(Clone)]
pub struct Remote {
    /// The node itself, for inspection.
    pub node: EmbeddedNode,
    world: World,
    way: Way,
    stated: Arc<Mutex<Stated>>,
}

/// The stated leases in milliseconds by number, for each claim.
type Stated = BTreeMap<(Name, OwnerId), BTreeMap<u64, u64>>;

impl Remote {
    /// Creates an empty node.
    pub fn new(world: &World, way: Way) -> Self {
        Remote {
            node: EmbeddedNode::with_runtime(world.runtime()),
            world: world.clone(),
            way,
            stated: Arc::default(),
        }
    }

    fn hear(&self, request: &Request) {
        match request {
            Request::Acquire(ask) => self.state(&ask.name, ask.owner, ask.keep, ask.lease.millis()),
            Request::Renew(ask) => {
                for claim in &ask.claims {
                    self.state(&claim.name, claim.owner, claim.keep, claim.lease.millis());
                }
            }
            _ => {}
        }
    }

    fn state(&self, name: &Name, owner: OwnerId, keep: Option<ClockMargin>, lease: u64) {
        let Some(ClockMargin { number, .. }) = keep else {
            return;
        };
        let mut stated = self.stated.lock().unwrap();
        let of_claim = stated.entry((name.clone(), owner)).or_default();
        of_claim.insert(number, lease);
        let before = of_claim.range(..number).next_back();
        let after = of_claim.range(number + 1..).next();
        let is_ordered = before.is_none_or(|(_, before)| *before <= lease)
            && after.is_none_or(|(_, after)| lease <= *after);
        let shown = format!("{of_claim:?}");
        drop(stated);
        assert!(
            is_ordered,
            "a larger number with a shorter lease, for {name}: {shown}"
        );
    }
}

impl Remote {
    /// Returns the transport to the node.
    pub fn transport(&self) -> Intercept<EmbeddedNode> {
        let remote = self.clone();
        Intercept::new(self.node.clone()).on_call(move |_, request| remote.call(request))
    }

    fn call(&self, request: Request) -> Call {
        self.hear(&request);
        if self.way == Way::Near {
            return self.node.call(request);
        }
        let (node, world) = (self.node.clone(), self.world.clone());
        Box::pin(async move {
            let answer = Arc::new(Mailbox::new());
            let answered = answer.clone();
            world.spawn(Box::pin(async move {
                if is_traced() {
                    eprintln!("{}: {request:?}", node.address());
                }
                let answer = node.call(request).await;
                if is_traced() {
                    eprintln!("{}: {answer:?}", node.address());
                }
                answered.put(answer);
            }));
            poll_fn(|cx| answer.poll_take(cx)).await
        })
    }
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.node.fmt(f)
    }
}

/// Returns whether requests and replies are printed, for one schedule that is replayed.
fn is_traced() -> bool {
    std::env::var_os("QUORLOCK_TRACE").is_some()
}
