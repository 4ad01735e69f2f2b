//! The operator's requests: who holds a name, and releasing it by force.

pub(crate) mod ask;
#[cfg(any(feature = "redis", feature = "store"))]
mod examine;
mod force;
mod inspect;

#[cfg(any(feature = "redis", feature = "store"))]
#[doc(hidden)]
pub use examine::{Examination, ExaminedNode, Limits, NodeFacts, StoreFacts};
pub use force::{ForceReleaseError, ForceReleased, NodeForceRelease};
pub use inspect::{Inspection, NodeInspection, Summary};
pub use quorlock_core::message::{ForceReleaseReply, Found, InspectReply, Ttl};
#[cfg(feature = "redis")]
#[doc(hidden)]
pub use quorlock_redis::{
    ClockFacts, ExaminedServer, RightsFacts, RightsTold, SentinelFacts, ServerFacts, SlowCommand,
};

use futures_util::future::join;
use quorlock_core::message::{ForceRelease, Inspect, Reply, Request};
use quorlock_core::name::Name;

use crate::error::ConfigError;
use crate::locks::source::LockSource;

/// Reads what the nodes store under a name.
pub(crate) async fn inspect(
    source: &LockSource,
    name: impl AsRef<[u8]>,
) -> Result<Inspection, ConfigError> {
    let name = key(source, name)?;
    let request = Request::Inspect(Inspect {
        name: name.clone(),
        finds_client: true,
    });
    let nodes = ask::all(source, &request, |reply| match reply {
        Reply::Inspect(reply) => Some(reply),
        _ => None,
    });
    let (nodes, quarantines) = join(nodes, ask::about_themselves(source)).await;
    let nodes = nodes.into_iter().zip(quarantines);
    Ok(Inspection {
        name,
        needed: source.threshold().needed(),
        nodes: nodes
            .map(|((address, found), quarantine)| NodeInspection {
                address,
                found,
                quarantine,
            })
            .collect(),
    })
}

/// Releases a name on the nodes by force.
pub(crate) async fn force_release(
    source: &LockSource,
    name: impl AsRef<[u8]>,
) -> Result<ForceReleased, ForceReleaseError> {
    let name = key(source, name)?;
    let request = Request::ForceRelease(ForceRelease { name: name.clone() });
    let nodes = ask::all(source, &request, |reply| match reply {
        Reply::ForceRelease(reply) => Some(reply),
        _ => None,
    });
    let nodes = nodes.await.into_iter();
    let report = ForceReleased {
        name,
        needed: source.threshold().needed(),
        nodes: nodes
            .map(|(address, result)| NodeForceRelease { address, result })
            .collect(),
    };
    if report.is_free() {
        Ok(report)
    } else {
        Err(ForceReleaseError::Unconfirmed(report))
    }
}

fn key(source: &LockSource, name: impl AsRef<[u8]>) -> Result<Name, ConfigError> {
    let given = Name::new(name)?;
    source.key(&given)
}
