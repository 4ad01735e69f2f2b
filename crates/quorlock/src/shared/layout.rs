//! The names and nodes that make up a lock.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quorlock_core::claim_version::ClockMargin;
use quorlock_core::lease::Lease;
use quorlock_core::message::Mode;
use quorlock_core::name::Name;
use quorlock_core::quorum::{MemberId, Members, Threshold};
use quorlock_core::time::millis_of;
use quorlock_core::transport::TransportError;

use crate::error::{ConfigError, LeaseSource, NodeReport, Quarantine};
use crate::shared::party::Party;
use crate::shared::trust::{NodeHandle, Question};

/// The largest number of names in one lock.
pub(crate) const MOST_NAMES: usize = 10_000;

/// A node, shared by all locks of its client.
pub(crate) type Node = Arc<NodeHandle>;

/// The members of a lock in canonical order: by the addresses of their nodes, then by name.
pub(crate) struct Layout {
    pub(crate) members: Arc<Members>,
    places: Box<[Place]>,
    pub(crate) parts: Box<[Part]>,
    /// The clients of members, except for that of the first member. Usually empty.
    others: Box<[Arc<Party>]>,
    /// A string that is equal for equal locks of one client.
    pub(crate) key: Arc<str>,
}

/// The place of one member of a lock: a name on a node.
pub(crate) struct Place {
    pub(crate) node: Node,
    pub(crate) name: Name,
    pub(crate) mode: Mode,
    pub(crate) group: usize,
}

impl Place {
    /// The clock margin for a claim, with the number of the owner's request. A fair lock has none, because its
    /// queue is ordered by the node's clock.
    pub(crate) fn keep(&self, number: u64) -> Option<ClockMargin> {
        match self.mode {
            Mode::Fair => None,
            Mode::Plain | Mode::Read | Mode::Write => self.node.keep(number),
        }
    }

    /// Returns what an acquire that is sent now states about the node of this member.
    pub(crate) fn ask(&self) -> Question {
        let name = (self.mode == Mode::Plain).then_some(&self.name);
        self.node.ask(name)
    }
}

/// One part of a lock: a name on the nodes that store it. Its places are one group of members.
#[derive(Clone)]
pub(crate) struct Part {
    /// The key on the nodes.
    pub(crate) name: Name,
    /// The name without the key prefix.
    pub(crate) given: Name,
    pub(crate) mode: Mode,
    pub(crate) nodes: Arc<[Node]>,
    pub(crate) threshold: Threshold,
}

impl Part {
    fn addresses(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().map(|node| node.address())
    }

    fn order(&self, other: &Part) -> std::cmp::Ordering {
        self.order_of_place(other)
            .then_with(|| self.mode.cmp(&other.mode))
    }

    fn order_of_place(&self, other: &Part) -> std::cmp::Ordering {
        let nodes = self.addresses().cmp(other.addresses());
        nodes.then_with(|| self.name.cmp(&other.name))
    }

    /// Whether the other part is the same name on the same nodes, in any mode.
    pub(crate) fn is_same_place(&self, other: &Part) -> bool {
        self.order_of_place(other).is_eq()
    }
}

impl Layout {
    /// Creates the layout of a lock with these parts, which may be in any order and contain duplicates.
    ///
    /// `parties` are additional clients whose settings apply. If two parts are the same name on the same nodes, the
    /// second is dropped, but its client stays a party to the lock.
    ///
    /// # Errors
    /// [`ConfigError`] if there are no parts, too many names or members, or one name in two modes.
    pub(crate) fn of(
        parts: Vec<Part>,
        parties: Vec<Arc<Party>>,
    ) -> Result<Arc<Layout>, ConfigError> {
        if parts.is_empty() {
            return Err(ConfigError::NoNames);
        }
        let (names, most) = (parts.len(), MOST_NAMES);
        if most < names {
            return Err(ConfigError::TooManyNames { names, most });
        }
        let members = parts.iter().map(|part| part.nodes.len()).sum();
        let most = Members::MOST;
        if most < members {
            return Err(ConfigError::TooManyMembers { members, most });
        }
        let layout = Layout::new(parts, parties);
        for (one, other) in layout.parts.iter().zip(layout.parts.iter().skip(1)) {
            if one.is_same_place(other) {
                return Err(ConfigError::TwoModes {
                    name: one.given.to_string(),
                    modes: [one.mode, other.mode],
                });
            }
        }
        Ok(Arc::new(layout))
    }

    /// Returns a new layout under a key that no lock has. An owner remembers the permit that it holds under this key. With the key of
    /// the plain lock of the same name, it would take the permit for that lock, or that lock for a permit.
    pub(crate) fn of_a_semaphore(mut layout: Arc<Layout>) -> Arc<Layout> {
        if let Some(own) = Arc::get_mut(&mut layout) {
            own.key = format!("{}\0semaphore", own.key).into();
        }
        layout
    }

    fn new(mut parts: Vec<Part>, parties: Vec<Arc<Party>>) -> Self {
        if 1 < parts.len() {
            // One order for all clients. If A took X and then Y, and B took Y and then X, each would hold one and
            // wait for the other.
            parts.sort_by(Part::order);
            parts.dedup_by(|a, b| a.order(b).is_eq());
        }
        // A lock is often made just to be acquired once, so allocate everything once, in its final size.
        let mut places = Vec::with_capacity(parts.iter().map(|part| part.nodes.len()).sum());
        for (group, part) in parts.iter().enumerate() {
            places.extend(part.nodes.iter().map(|node| Place {
                node: node.clone(),
                name: part.name.clone(),
                mode: part.mode,
                group,
            }));
        }
        let mut others: Vec<Arc<Party>> = Vec::new();
        let mut nodes = parts.iter().filter_map(|part| part.nodes.first());
        let first = nodes.next().map(|node| &node.party);
        for party in nodes.map(|node| &node.party).chain(&parties) {
            let is_known = |known: &Arc<Party>| Arc::ptr_eq(known, party);
            if !first.is_some_and(is_known) && !others.iter().any(is_known) {
                others.push(party.clone());
            }
        }
        let parties: Vec<_> = first.into_iter().chain(&others).collect();
        let key = key_of(&parts, &parties).into();
        Layout {
            others: others.into(),
            members: Arc::new(Members::new(parts.iter().map(|part| part.threshold))),
            places: places.into(),
            parts: parts.into(),
            key,
        }
    }

    /// The clients whose nodes are members.
    pub(crate) fn parties(&self) -> impl Iterator<Item = &Arc<Party>> {
        let first = self.parts.first().and_then(|part| part.nodes.first());
        let first = first.map(|node| &node.party).into_iter();
        first.chain(self.others.iter())
    }

    /// Checks a lease against the settings of every client. A node that lost its data is trusted again after the
    /// longest lease of its own client. With a longer lease A would still rely on a claim that this node has
    /// forgotten and may grant to B.
    pub(crate) fn check(&self, of: LeaseSource, lease: Lease) -> Result<(), ConfigError> {
        let length = lease.length();
        for party in self.parties() {
            // Leases are rounded up to whole milliseconds. The bound is rounded too, or the longest lease itself
            // would be too long.
            if millis_of(party.longest_lease) < lease.millis() {
                return Err(ConfigError::LeaseTooLong {
                    of,
                    lease: length,
                    longest: party.longest_lease,
                });
            }
        }
        match self.max_hold() {
            Some(max_hold) if millis_of(max_hold) < lease.millis() => Err(ConfigError::MaxHold {
                of,
                max_hold,
                lease: length,
            }),
            _ => Ok(()),
        }
    }

    /// Checks the lease of a renewal against what the nodes grant at present. A node checks only acquires.
    pub(crate) fn check_granted(&self, lease: Lease) -> Result<(), ConfigError> {
        let refusing = self.places.iter().find_map(|place| {
            let quarantine = place.node.raising(lease)?;
            Some(ConfigError::LeaseNotGranted {
                lease: lease.length(),
                address: place.node.address().to_owned(),
                quarantine,
            })
        });
        refusing.map_or(Ok(()), Err)
    }

    /// How often the clients of the members have learned that a longer watch is needed.
    pub(crate) fn rises(&self) -> u64 {
        let nodes = self.parts.iter().filter_map(|part| part.nodes.first());
        nodes.map(|node| node.rises()).sum()
    }

    /// The key of the lock of the same name in the mode that competes with this one. A reader has no rival in plain
    /// mode: it does not wait for a plain lock, which is an immediate error. `None` for a lock of several names,
    /// where competitors are not looked up.
    pub(crate) fn rival_key(&self) -> Option<String> {
        let [only] = &*self.parts else {
            return None;
        };
        let mode = match only.mode {
            Mode::Plain => Mode::Fair,
            Mode::Fair => Mode::Plain,
            Mode::Read => Mode::Write,
            Mode::Write => Mode::Read,
        };
        let rival = Part {
            mode,
            ..only.clone()
        };
        let parties: Vec<_> = self.parties().collect();
        Some(key_of(&[rival], &parties))
    }

    /// Whether the client of one of its members was closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.parties().any(|party| party.is_closed())
    }

    /// The longest time that the lock may be held, by the settings of every client.
    pub(crate) fn max_hold(&self) -> Option<Duration> {
        self.parties().filter_map(|party| party.max_hold).min()
    }

    pub(crate) fn place(&self, member: MemberId) -> &Place {
        member
            .get(&self.places)
            .expect("BUG: a member of another layout")
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (MemberId, &Place)> {
        self.members.all().zip(self.places.iter())
    }

    /// The members of fair parts.
    pub(crate) fn fair(&self) -> impl Iterator<Item = (MemberId, &Place)> {
        self.all().filter(|(_, place)| place.mode == Mode::Fair)
    }

    /// The largest number of nodes that a name of the lock has.
    pub(crate) fn most_nodes(&self) -> usize {
        let nodes = self.parts.iter().map(|part| part.nodes.len());
        nodes.max().unwrap_or(0)
    }

    /// Whether the lock has a name in this mode.
    pub(crate) fn has(&self, mode: Mode) -> bool {
        self.parts.iter().any(|part| part.mode == mode)
    }

    /// The keys on the nodes.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Name> {
        self.parts.iter().map(|part| &part.name)
    }

    /// A name that both locks have, if there is one.
    pub(crate) fn common_name(&self, other: &Layout) -> Option<&Name> {
        let others: BTreeSet<&Name> = other.names().collect();
        self.names().find(|name| others.contains(name))
    }

    /// Reports the nodes whose members failed, did not answer in time, or are quarantined.
    pub(crate) fn reports(
        &self,
        errors: &[(MemberId, TransportError)],
        is_silent: impl Fn(MemberId) -> bool,
        quarantine: impl Fn(MemberId) -> Option<Quarantine>,
    ) -> Vec<NodeReport> {
        let mut reports = Vec::new();
        for (member, place) in self.all() {
            let error = errors.iter().find(|(m, _)| *m == member);
            let quarantine = quarantine(member);
            if error.is_some() || quarantine.is_some() || is_silent(member) {
                let report = NodeReport {
                    address: place.node.address().to_owned(),
                    error: error.map(|(_, error)| error.clone()),
                    quarantine,
                };
                // A node has a member for each name, and mostly the same reason for all of them.
                if !reports.iter().any(|known| says_the_same(known, &report)) {
                    reports.push(report);
                }
            }
        }
        reports
    }

    /// The names without the key prefix.
    pub(crate) fn given(&self) -> impl Iterator<Item = &Name> {
        self.parts.iter().map(|part| &part.given)
    }

    /// The keys as a text, for errors.
    pub(crate) fn title(&self) -> String {
        self.to_string()
    }
}

/// Whether two reports are of one node and differ in the remaining time of its quarantine alone.
fn says_the_same(one: &NodeReport, other: &NodeReport) -> bool {
    let why = |report: &NodeReport| report.quarantine.map(|quarantine| quarantine.why);
    one.address == other.address && one.error == other.error && why(one) == why(other)
}

/// The string that identifies a lock among those of one client.
fn key_of(parts: &[Part], parties: &[&Arc<Party>]) -> String {
    match (parts, parties) {
        ([only], [_]) if only.mode == Mode::Plain => text_of(&only.name).into_owned(),
        (_, [_]) => joined(parts, &[]),
        // Include the first party, because the locks of A and of B may differ in it alone.
        _ => joined(parts, parties),
    }
}

/// Joins the parts of a key with NUL, which names cannot contain, so that different lists of names have different keys.
///
/// Equal lists of different clients have different keys, too. Otherwise a waiter could get a hold with the layout of
/// the waiter in front, which obeys other clients' settings and ends when those are closed.
fn joined(parts: &[Part], parties: &[&Arc<Party>]) -> String {
    let mut key = String::new();
    for part in parts {
        key.push_str(&text_of(&part.name));
        for address in part.addresses() {
            key.push('\0');
            key.push_str(address);
        }
        key.push('\0');
        key.push(match part.mode {
            Mode::Plain => '\0',
            Mode::Fair => 'f',
            Mode::Read => 'r',
            Mode::Write => 'w',
        });
    }
    for party in parties {
        key.push('\0');
        key.push_str(&format!("{:016x}", party.number));
    }
    key
}

/// A text that is unique for each name. Two names with invalid UTF-8 may be displayed alike: A would wait in B's
/// queue and be given B's lock. Names cannot contain NUL, so the escaped form collides with no other name.
fn text_of(name: &Name) -> Cow<'_, str> {
    match name.to_str() {
        Some(text) => Cow::Borrowed(text),
        None => Cow::Owned(format!("\0b{}\0", name.as_bytes().escape_ascii())),
    }
}

/// Writes the keys, separated by commas.
impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, name) in self.names().enumerate() {
            if 0 < index {
                f.write_str(", ")?;
            }
            f.write_str(&name.text())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}
