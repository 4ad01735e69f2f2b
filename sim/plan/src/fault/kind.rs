//! Kinds of fault, by their names. The kinds themselves are the rows of the [table](super::table).

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::detail::Direction;
use super::table::{Allowed, Drawn, Forgets, Length, Needs};
use super::{Fault, FaultKind, Kind};

#[expect(
    clippy::indexing_slicing,
    reason = "a constant function cannot use iterators"
)]
impl Kind {
    /// Every kind, in the order of its number.
    pub const ALL: [Kind; Kind::ROWS.len()] = {
        let mut all = [Kind::Cut; Kind::ROWS.len()];
        let mut row = 0;
        while row < all.len() {
            let kind = Kind::ROWS[row];
            // The numbers of the rows differ, so each place is filled if none of them is beyond the last place.
            all[kind as usize] = kind;
            row += 1;
        }
        all
    };

    const NAMES: [&'static str; Kind::ALL.len()] = {
        let mut names = [""; Kind::ALL.len()];
        let mut number = 0;
        while number < names.len() {
            names[number] = Kind::ALL[number].name();
            number += 1;
        }
        names
    };

    /// Returns every kind except these, in the same order.
    ///
    /// # Panics
    /// Panics unless `N` is the number of kinds that are left.
    pub const fn all_but<const N: usize>(left_out: &[Kind]) -> [Kind; N] {
        let mut rest = [Kind::Cut; N];
        let (mut from, mut to) = (0, 0);
        while from < Kind::ALL.len() {
            let kind = Kind::ALL[from];
            let mut index = 0;
            while index < left_out.len() && left_out[index] as u8 != kind as u8 {
                index += 1;
            }
            if index == left_out.len() {
                rest[to] = kind;
                to += 1;
            }
            from += 1;
        }
        assert!(to == N);
        rest
    }
}

impl Kind {
    /// Returns the kind with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns the deployment that the fault needs.
    #[must_use]
    pub const fn needs(self) -> Needs {
        self.row().needs
    }

    /// Returns whether the fault may strike a replica instead of its primary.
    #[must_use]
    pub const fn strikes_replicas(self) -> bool {
        self.row().strikes_replicas
    }

    /// Returns whether the fault ends. Otherwise it happens once, or is permanent.
    #[must_use]
    pub fn ends(self) -> bool {
        self.row().length != Length::None
    }

    /// Returns whether the fault strikes one node.
    #[must_use]
    pub fn is_of_node(self) -> bool {
        matches!(self.blank(), FaultKind::Node { .. })
    }

    /// Returns the name of the field that holds the length of the fault in files.
    #[must_use]
    pub const fn length_field(self) -> &'static str {
        match self.row().length {
            Length::None | Length::Lasts => "lasts",
            Length::RestartAfter => "restart_after",
            Length::RejoinAfter => "rejoin_after",
        }
    }

    /// Returns whether clients that watch the node may take it for another process after the fault.
    pub(crate) const fn looks_new(self) -> bool {
        self.row().looks_new
    }

    /// Returns whether nodes that elect their primaries elect another one because of the fault.
    #[must_use]
    pub const fn leads_to_election(self) -> bool {
        self.row().leads_to_election
    }

    /// Returns whether the fault sets a clock of its client or node, or makes it run differently.
    #[must_use]
    pub const fn sets_clock(self) -> bool {
        self.row().sets_clock
    }

    /// Returns what a node forgets by the fault.
    pub(crate) const fn forgets(self) -> Forgets {
        self.row().forgets
    }

    /// Returns the plans for which faults of the kind are drawn.
    pub(crate) const fn drawn(self) -> Drawn {
        self.row().drawn
    }

    /// Returns the largest number of faults of the kind that are drawn for a plan.
    pub(crate) const fn most(self) -> u64 {
        self.row().most
    }

    /// Returns when the stated assumptions of a lock allow the fault.
    pub(crate) const fn allowed(self) -> Allowed {
        self.row().allowed
    }

    /// Returns the reason why the lane over sockets lacks the fault, or `None` if it has it.
    pub(crate) const fn lacks_sockets(self) -> Option<&'static str> {
        self.row().not_over_sockets
    }

    /// Returns the reason why the fault is impossible on real servers, or `None` if it is possible.
    #[must_use]
    pub const fn lacks_real_servers(self) -> Option<&'static str> {
        self.row().not_on_real_servers
    }

    /// Returns the reason why nodes that are served on ports lack the fault, or `None` if they have it.
    #[must_use]
    pub const fn lacks_served(self) -> Option<&'static str> {
        self.row().not_served
    }

    /// Returns the direction of the affected messages, if it is the same for all faults of this kind.
    pub(crate) const fn direction(self) -> Option<Direction> {
        self.row().direction
    }
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Kind::named(&name).ok_or_else(|| D::Error::unknown_variant(&name, &Kind::NAMES))
    }
}

impl Fault {
    /// Returns the kind of the fault.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match &self.what {
            FaultKind::Link { fault, .. } => fault.kind(),
            FaultKind::Client { fault, .. } => fault.kind(),
            FaultKind::Node { fault, .. } => fault.kind(),
            FaultKind::Nodes { fault, .. } => fault.kind(),
        }
    }
}
