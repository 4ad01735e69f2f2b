//! Examines the nodes at addresses, for operators.

#[cfg(feature = "store")]
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures_util::future::join_all;
use quorlock_core::name::Name;
use quorlock_core::quorum::Threshold;
#[cfg(feature = "redis")]
use quorlock_core::transport::Transport as _;

use super::member::Member;
use crate::builder::{LocksBuilder, distinct};
use crate::error::ConnectError;
#[cfg(feature = "store")]
use crate::operate::StoreFacts;
use crate::operate::{Examination, ExaminedNode, Limits, NodeFacts};
use crate::shared::trust::NodeTrust;

impl LocksBuilder {
    /// Examines the nodes at these addresses, all at once, for locks on a name. Nothing is written. A node that cannot be
    /// used is part of the answer.
    ///
    /// # Errors
    /// [`ConnectError`] if an address or the settings are invalid.
    #[doc(hidden)]
    pub async fn examine<A: AsRef<str>>(
        &self,
        addresses: impl IntoIterator<Item = A>,
        name: impl AsRef<[u8]>,
    ) -> Result<Examination, ConnectError> {
        let config = self.check()?;
        let name = config.key(&Name::new(name).map_err(crate::ConfigError::Name)?);
        let name = &name.map_err(crate::ConfigError::Name)?;
        let mut members = self.members(addresses)?;
        members.sort_by(|a, b| a.address().cmp(b.address()));
        distinct(members.iter().map(Member::address))?;
        let of = members.len();
        let is_watched = self.trust_in(of) != NodeTrust::Unwatched;
        let nodes = members.iter().map(|member| async move {
            // The check says in words of its own what is wrong, also with a proxy or a replica.
            let (checked, facts) =
                futures_util::future::join(member.check(), member.examine(name, is_watched)).await;
            ExaminedNode {
                address: member.address().to_owned(),
                problem: checked.err(),
                facts,
            }
        });
        Ok(Examination {
            nodes: join_all(nodes).await,
            limits: Limits {
                needed: Threshold::majority(of).needed(),
                is_watched,
                lease: self.watchdog_lease,
                member_timeout: config.member_timeout(config.watchdog_lease),
                longest_lease: config.longest_lease,
                clock_margin: self.margin_on(of),
            },
        })
    }
}

impl Member {
    async fn examine(&self, name: &Name, is_watched: bool) -> NodeFacts {
        match self {
            #[cfg(feature = "redis")]
            Member::Redis(node) => NodeFacts::Redis {
                is_of_cluster: node.is_of_cluster(),
                servers: node
                    .examine(name, is_watched)
                    .await
                    .unwrap_or_else(|error| {
                        vec![quorlock_redis::ExaminedServer {
                            address: node.address().to_owned(),
                            facts: Err(error),
                        }]
                    }),
                sentinels: node.sentinels().await,
            },
            #[cfg(feature = "store")]
            Member::Store(node) => {
                let _ = (name, is_watched);
                NodeFacts::Store(of_store(node).await)
            }
        }
    }
}

/// How many reads of a store are measured.
#[cfg(feature = "store")]
const READS: usize = 5;

/// How long the reads of a slow store are measured. A store that is only busy has time for all of them.
#[cfg(feature = "store")]
const READ_FOR: Duration = Duration::from_secs(5);

/// Reads the marker of a store a few times, and asks for its version.
#[cfg(feature = "store")]
#[expect(
    clippy::disallowed_methods,
    reason = "compares the clock of a store with this machine's, decides nothing"
)]
async fn of_store(node: &quorlock_store::StoreTransport) -> StoreFacts {
    let mut facts = StoreFacts::default();
    let began = Instant::now();
    if node.check().await.is_err() {
        return facts;
    }
    facts.connected_in = began.elapsed();
    let key = quorlock_store::Key::new(quorlock_store::Key::MARKER);
    let mut quickest = Duration::MAX;
    let began = Instant::now();
    while facts.round_trips.len() < READS && began.elapsed() < READ_FOR {
        let (sent, wall) = (Instant::now(), SystemTime::now());
        let Ok(snapshot) = node.store().read(&key).await else {
            break;
        };
        let took = sent.elapsed();
        facts.round_trips.push(took);
        let here = wall.duration_since(UNIX_EPOCH).unwrap_or_default() + took / 2;
        if let Some(now) = snapshot.stamp.now
            && took < quickest
        {
            quickest = took;
            facts.ahead_millis = Some(signed(u128::from(now.0)) - signed(here.as_millis()));
            // The store states whole milliseconds.
            facts.within_millis = signed((took / 2).as_millis()) + 1;
        }
    }
    facts.round_trips.sort();
    facts.version = node.store().version().await.ok().flatten();
    facts
}

#[cfg(feature = "store")]
fn signed(millis: u128) -> i64 {
    i64::try_from(millis).unwrap_or(i64::MAX)
}
