//! The report of who holds a name.

use std::collections::BTreeMap;
use std::fmt;

use quorlock_core::message::{Found, InspectReply, Ttl};
use quorlock_core::name::Name;
use quorlock_core::transport::TransportError;

use crate::error::Quarantine;

/// What the nodes store under a name. See [`Locks::inspect`](crate::Locks::inspect).
///
/// The `Display` text has one line with the summary, and one for each node.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Inspection {
    /// The key, with the key prefix.
    pub name: Name,
    /// The number of nodes that a lock needs.
    pub needed: usize,
    /// The answer of each node, in canonical order.
    pub nodes: Vec<NodeInspection>,
}

/// What one node stores under a name.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct NodeInspection {
    /// The node's address, without credentials.
    pub address: String,
    /// The lock and the stored token, or the error because of which the node is not counted.
    pub found: Result<InspectReply, TransportError>,
    /// Why the node's votes for new holds do not count, if it is quarantined. For a node that did not answer it is
    /// the last known state.
    pub quarantine: Option<Quarantine>,
}

/// The summary of the nodes' answers.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Summary {
    /// Enough nodes show the same owner: it holds the name.
    Held {
        /// The owner, as the nodes store it.
        owner: String,
        /// The number of nodes that show this owner.
        nodes: usize,
    },
    /// Enough nodes show readers, and no writer.
    Read {
        /// The number of nodes that show readers.
        nodes: usize,
    },
    /// No owner holds the name, but enough nodes reserve it for the first waiter in the queue of the fair lock. A
    /// dead waiter is passed over in time; [`Locks::force_release`](crate::Locks::force_release) does so at once.
    Queued {
        /// The number of nodes that reserve the name.
        nodes: usize,
    },
    /// The name is free on enough nodes for a client to acquire it.
    Free,
    /// Keys that are not locks prevent every client from acquiring the name.
    Obstructed,
    /// Enough nodes answered, but no owner has a quorum, and too few nodes are free: votes are split, or an owner
    /// left claims behind. This state passes; inspect again.
    Undecided,
    /// Too few nodes answered.
    Unknown,
}

impl Inspection {
    /// Returns the summary of the nodes' answers.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let mut owners: BTreeMap<&str, usize> = BTreeMap::new();
        let (mut free, mut queued, mut read, mut strange) = (0, 0, 0, 0);
        let replies: Vec<_> = self.replies().collect();
        for reply in &replies {
            match &reply.found {
                Found::Plain { owner, .. }
                | Found::ReadWrite {
                    writer: Some((owner, _)),
                    ..
                } => *owners.entry(owner).or_default() += 1,
                _ if is_free(reply) => free += 1,
                Found::Nothing => queued += 1,
                Found::ReadWrite { writer: None, .. } => read += 1,
                Found::NotALock => strange += 1,
                // A lock of another kind is neither free nor held by one owner, so the node counts for neither.
                _ => {}
            }
        }
        let most = owners.into_iter().max_by_key(|(_, nodes)| *nodes);
        let spare = self.nodes.len().saturating_sub(self.needed);
        match most {
            Some((owner, nodes)) if self.needed <= nodes => Summary::Held {
                owner: owner.to_owned(),
                nodes,
            },
            _ if self.needed <= read => Summary::Read { nodes: read },
            _ if spare < strange => Summary::Obstructed,
            _ if self.needed <= free => Summary::Free,
            _ if spare < queued => Summary::Queued { nodes: queued },
            _ if replies.len() < self.needed => Summary::Unknown,
            _ => Summary::Undecided,
        }
    }

    /// Returns the label and the address of the owner's client, if a node shows one that has a
    /// [label](crate::LocksBuilder::label). For a lock on several nodes it is that on the first of them: each sees another port.
    #[must_use]
    pub fn client(&self) -> Option<&str> {
        self.replies().find_map(|reply| reply.client.as_deref())
    }

    fn replies(&self) -> impl Iterator<Item = &InspectReply> {
        let nodes = self.nodes.iter();
        nodes.filter_map(|node| node.found.as_ref().ok())
    }
}

/// Whether the name can be acquired on the node. Claims that dead readers left behind do not prevent this.
fn is_free(reply: &InspectReply) -> bool {
    match reply.found {
        Found::Nothing => reply.waiting == 0,
        Found::ReadWrite {
            writer: None,
            readers: 0,
            ..
        } => true,
        _ => false,
    }
}

impl fmt::Display for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (of, needed) = (self.nodes.len(), self.needed);
        let count =
            |is: fn(&InspectReply) -> bool| self.replies().filter(|reply| is(reply)).count();
        write!(f, "{}: ", self.name)?;
        match self.summary() {
            Summary::Held { owner, nodes } => write!(f, "held by {owner} on {nodes} of {of} nodes"),
            Summary::Read { nodes } => write!(f, "read on {nodes} of {of} nodes"),
            Summary::Free => {
                let free = count(is_free);
                write!(f, "free on {free} of {of} nodes")
            }
            Summary::Queued { nodes } => {
                write!(
                    f,
                    "kept for the first in the queue on {nodes} of {of} nodes"
                )
            }
            Summary::Obstructed => {
                let keys = count(|reply| reply.found == Found::NotALock);
                write!(
                    f,
                    "a key that is no lock is in the way on {keys} of {of} nodes"
                )
            }
            Summary::Undecided => write!(f, "no owner is seen on a quorum of the {of} nodes"),
            Summary::Unknown => {
                write!(
                    f,
                    "unknown: {} of {of} nodes answered",
                    self.replies().count()
                )
            }
        }?;
        write!(f, " ({needed} needed)")?;
        self.nodes
            .iter()
            .try_for_each(|node| write!(f, "\n  {node}"))
    }
}

impl fmt::Display for NodeInspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.address)?;
        let InspectReply {
            found,
            waiting,
            token,
            client,
            ..
        } = match &self.found {
            Ok(reply) => reply,
            Err(error) => return write!(f, "not counted: {error}"),
        };
        match found {
            Found::Nothing if *waiting == 0 => f.write_str("free"),
            Found::Nothing => f.write_str("held by no owner"),
            Found::Plain { owner, count, ttl } => {
                write!(f, "held by {owner}")?;
                if let Some(client) = client {
                    write!(f, " ({client})")?;
                }
                write!(f, ", count {count}, {}", Left(*ttl))
            }
            Found::ReadWrite {
                writer,
                readers,
                ttl,
            } => {
                if let Some((owner, count)) = writer {
                    write!(f, "written by {owner}")?;
                    if let Some(client) = client {
                        write!(f, " ({client})")?;
                    }
                    write!(f, ", count {count}, ")?;
                }
                write!(f, "readers {readers}, {}", Left(*ttl))
            }
            Found::NotALock => f.write_str("a key that is no lock"),
            other => write!(f, "{other:?}"),
        }?;
        if 0 < *waiting {
            write!(f, ", waiting {waiting}")?;
        }
        match token {
            Some(token) => write!(f, ", token {token}"),
            None => f.write_str(", no token"),
        }?;
        match &self.quarantine {
            Some(quarantine) => write!(f, "; {quarantine}"),
            None => Ok(()),
        }
    }
}

struct Left(Ttl);

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Ttl::Millis(millis) => write!(f, "{}.{:03} s left", millis / 1_000, millis % 1_000),
            Ttl::Unbounded => f.write_str("without expiry"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorlock_core::fencing::Token;
    use quorlock_core::transport::Cause;

    fn plain(owner: &str) -> Option<Found> {
        Some(Found::Plain {
            owner: owner.into(),
            count: 1,
            ttl: Ttl::Millis(27_300),
        })
    }

    const FREE: Option<Found> = Some(Found::Nothing);
    const READ: Option<Found> = Some(Found::ReadWrite {
        writer: None,
        readers: 2,
        ttl: Ttl::Unbounded,
    });
    const STRANGE: Option<Found> = Some(Found::NotALock);

    fn inspection(found: impl IntoIterator<Item = Option<Found>>) -> Inspection {
        let found = found.into_iter().map(|found| {
            let token = Some(Token(7));
            let waiting = 0;
            found
                .map(|found| InspectReply::new(found, waiting, token))
                .ok_or_else(|| {
                    TransportError::indeterminate(Cause::TimedOut, "no answer within 1.5s")
                        .advised("the server or the network is slow or stopped")
                })
        });
        let nodes: Vec<_> = found
            .zip('a'..)
            .map(|(found, letter)| NodeInspection {
                address: letter.into(),
                found,
                quarantine: None,
            })
            .collect();
        Inspection {
            name: Name::new("n").unwrap(),
            needed: nodes.len() / 2 + 1,
            nodes,
        }
    }

    #[test]
    fn the_summary_names_whoever_has_a_quorum_and_nobody_else() {
        let (x, y, dead) = (|| plain("x"), || plain("y"), || None);
        let held = |nodes| Summary::Held {
            owner: "x".into(),
            nodes,
        };
        for (nodes, summary) in [
            ([x(), x(), x(), y(), FREE], held(3)),
            ([x(), x(), x(), dead(), READ], held(3)),
            ([READ, READ, READ, dead(), x()], Summary::Read { nodes: 3 }),
            ([READ, READ, FREE, x(), x()], Summary::Undecided),
            ([x(), x(), y(), y(), FREE], Summary::Undecided),
            ([x(), x(), FREE, dead(), dead()], Summary::Undecided),
            ([x(), x(), dead(), dead(), dead()], Summary::Unknown),
            ([FREE, FREE, FREE, x(), dead()], Summary::Free),
            ([FREE, FREE, FREE, FREE, READ], Summary::Free),
            ([FREE, FREE, FREE, STRANGE, None], Summary::Free),
            ([FREE, FREE, STRANGE, STRANGE, STRANGE], Summary::Obstructed),
        ] {
            assert_eq!(inspection(nodes.clone()).summary(), summary, "{nodes:?}");
        }
        let strange = inspection([STRANGE]);
        assert_eq!(strange.summary(), Summary::Obstructed);
    }

    #[test]
    fn it_reads_well_in_a_terminal() {
        let text = inspection([plain("x"), STRANGE, STRANGE, None, READ]).to_string();
        assert_eq!(
            text,
            "n: no owner is seen on a quorum of the 5 nodes (3 needed)
  a: held by x, count 1, 27.300 s left, token 7
  b: a key that is no lock, token 7
  c: a key that is no lock, token 7
  d: not counted: the server or the network is slow or stopped: no answer within 1.5s
  e: readers 2, without expiry, token 7"
        );
        let text = inspection([plain("x")]).to_string();
        assert!(text.starts_with("n: held by x on 1 of 1 nodes (1 needed)\n"));
    }
}
