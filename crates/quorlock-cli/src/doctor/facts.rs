//! What is read from the servers of a deployment.

use std::time::{Duration, Instant};

use futures_util::future::join;
use quorlock::errors::Quarantine;
use quorlock::operate::{ExaminedNode, Limits, NodeInspection};
use quorlock::transport::Cause;
use quorlock::{Locks, Why};

use crate::failure::Failure;
use crate::settings::Settings;

/// A deployment, and what was found out about it.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    /// Name of the lock that was tried.
    pub(crate) name: String,
    pub(crate) nodes: Vec<Node>,
    pub(crate) limits: Limits,
    pub(crate) trial: Trial,
    /// Whether nodes without a marker vote at once.
    pub(crate) trusts_fresh_nodes: bool,
}

/// A node.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) examined: ExaminedNode,
    /// Why its votes do not count, if they do not.
    pub(crate) quarantine: Option<Quarantine>,
}

impl Node {
    /// Whether the node can be used, and its votes count.
    pub(crate) fn votes(&self) -> bool {
        self.examined.problem.is_none() && self.quarantine.is_none()
    }
}

/// What became of the lock that was tried.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Trial {
    /// Acquired and released.
    Locked {
        took: Duration,
        /// Why its release is not confirmed, if it is not.
        unreleased: Option<String>,
    },
    /// Others hold it.
    Busy,
    /// Not tried, because too few nodes vote.
    Skipped,
    Failed(Failure),
}

/// Reads everything, from all nodes at once.
pub(crate) async fn gather(settings: &Settings, name: &str) -> Result<Facts, Failure> {
    let (builder, addresses) = (&settings.builder, &settings.addresses);
    // It does not begin to watch nodes: it ends long before one is trusted.
    let locks = builder.clone().for_operators().quorum_lazy(addresses)?;
    let (examined, (inspected, trial)) = join(
        builder.examine(addresses, name),
        tried(&locks, name, settings.trusts_fresh_nodes),
    )
    .await;
    // Grants of servers that answered late are released.
    locks.close().await;
    let (examined, inspected) = (examined?, inspected?);
    let nodes = examined.nodes.into_iter().map(|node| {
        let mut seen = inspected.iter();
        let seen = seen.find(|seen| seen.address == node.address);
        Node {
            quarantine: seen.and_then(|seen| seen.quarantine),
            examined: node,
        }
    });
    Ok(Facts {
        name: name.to_owned(),
        nodes: nodes.collect(),
        limits: examined.limits,
        trial,
        trusts_fresh_nodes: settings.trusts_fresh_nodes,
    })
}

/// Finds out which nodes are quarantined, and tries a lock if enough are not. A try on too few would write markers, whose longest
/// lease may be another than that of the deployment.
#[expect(clippy::disallowed_methods, reason = "tells a person how long it took")]
async fn tried(
    locks: &Locks,
    name: &str,
    trusts_fresh: bool,
) -> (Result<Vec<NodeInspection>, Failure>, Trial) {
    let inspection = match locks.inspect(name).await {
        Ok(inspection) => inspection,
        Err(error) => return (Err(error.into()), Trial::Skipped),
    };
    let mut nodes = inspection.nodes;
    for node in &mut nodes {
        // A lock marks it, and it votes at once.
        let is_fresh = |quarantine: &Quarantine| trusts_fresh && quarantine.why == Why::Missing;
        node.quarantine = node.quarantine.filter(|quarantine| !is_fresh(quarantine));
    }
    let may_vote = |node: &&NodeInspection| match node.quarantine.map(|quarantine| quarantine.why) {
        None => true,
        // It answers, and has not told what its marker is. The lock finds out why: the settings may be those of another deployment.
        Some(Why::Unknown) => answers(node),
        Some(_) => false,
    };
    if nodes.iter().filter(may_vote).count() < inspection.needed {
        return (Ok(nodes), Trial::Skipped);
    }
    let began = Instant::now();
    let trial = match locks.lock(name).try_acquire().await {
        Ok(Some(guard)) => {
            let released = guard.release().await;
            Trial::Locked {
                took: began.elapsed(),
                unreleased: released.err().map(|error| error.to_string()),
            }
        }
        Ok(None) => Trial::Busy,
        Err(error) => Trial::Failed(error.into()),
    };
    (Ok(nodes), trial)
}

/// Whether a node answers, if only to refuse.
fn answers(node: &NodeInspection) -> bool {
    match &node.found {
        Ok(_) => true,
        Err(error) => error.cause == Cause::NoPermission,
    }
}

impl Trial {
    pub(crate) fn is_locked(&self) -> bool {
        matches!(self, Trial::Locked { .. })
    }
}
