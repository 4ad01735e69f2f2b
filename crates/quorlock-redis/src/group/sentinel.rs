//! One sentinel: queries to it, and the subscription to its messages.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::join3;
use quorlock_core::transport::{Listener, TransportError};
use redis::Cmd;

use super::answer::{self, GroupView};
use super::hints::SentinelHints;
use crate::connect::Endpoint;
use crate::error;
use crate::link::{Connection, Usage};
use crate::subscription::Wakes;
use crate::subscription::registry::ListenerHandle;
use crate::target::Target;
use crate::timer;

/// The channels on which a sentinel publishes that a group has a new primary. The second channel is that of the
/// sentinel that performs the failover. Its message comes about a second earlier: the new server is the primary, but
/// the other replicas do not follow it yet.
const NEWS: [&str; 2] = ["+switch-master", "+promoted-slave"];

/// How the client learned of a sentinel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    /// From the address.
    Given,
    /// From another sentinel.
    Learned,
}

/// One sentinel of a group.
pub(super) struct Sentinel {
    endpoint: Endpoint,
    origin: Origin,
    target: Arc<Target>,
    wakes: Wakes,
    listening: OnceLock<[ListenerHandle; 2]>,
}

impl Sentinel {
    /// Creates a sentinel for the server of this target.
    pub(super) fn new(endpoint: Endpoint, origin: Origin, target: Target) -> Self {
        let target = Arc::new(target);
        Sentinel {
            endpoint,
            origin,
            wakes: Wakes::new(Arc::clone(&target)),
            target,
            listening: OnceLock::new(),
        }
    }

    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub(super) fn origin(&self) -> Origin {
        self.origin
    }

    /// Queries the primary of the group, and the other sentinels.
    ///
    /// # Errors
    /// An error that states why there is no valid answer within the bound.
    pub(super) async fn ask(
        &self,
        name: &str,
        bound: Duration,
    ) -> Result<GroupView, TransportError> {
        let deadline = timer::now() + bound;
        let asked = timer::by(deadline, async {
            let open = |lead| Connection::open(&self.target, lead, Usage::Questions, deadline);
            let link = self.target.open(deadline, open).await?;
            let cmds = ["GET-MASTER-ADDR-BY-NAME", "MASTER", "SENTINELS"];
            let [primary, state, others] = cmds.map(|verb| about(verb, name));
            let answers = join3(
                link.ask(&self.target, &primary),
                link.ask(&self.target, &state),
                link.ask(&self.target, &others),
            );
            let (primary, state, others) = answers.await;
            let state = state?;
            Ok(GroupView {
                primary: answer::endpoint(&primary?)?,
                epoch: answer::epoch(&state),
                quorum: answer::quorum(&state),
                others: answer::sentinels(&others?),
            })
        });
        let silent = || error::unreachable(format!("no answer within {bound:?}"));
        asked.await.unwrap_or_else(|| Err(silent()))
    }

    /// Subscribes to the sentinel's messages about primaries.
    pub(super) fn listen(&self, hints: &Arc<SentinelHints>) {
        self.listening.get_or_init(|| {
            let listener: Arc<dyn Listener> = hints.ear(self.endpoint.clone());
            NEWS.map(|news| {
                self.wakes
                    .subscribe(news.as_bytes().into(), Arc::clone(&listener))
            })
        });
    }
}

fn about(verb: &str, name: &str) -> Cmd {
    let mut cmd = redis::cmd("SENTINEL");
    cmd.arg(verb).arg(name);
    cmd
}

impl fmt::Debug for Sentinel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.endpoint)
    }
}
