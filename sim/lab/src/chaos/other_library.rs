//! Clients of another library beside the product's, on the same servers.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::counts::is_hand_over;
use quorlock_sim_world::history::{History, Section};

/// The other library's half of the clients of a run.
#[derive(Clone, Debug)]
pub(crate) struct OtherClients {
    /// The command line of a client, without the arguments that differ between clients.
    pub(crate) command: Arc<[String]>,
    pub(crate) names: NamesOfOthers,
}

/// The names that the other library's clients lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NamesOfOthers {
    /// The names of the product's clients, so that both exclude each other.
    Shared,
    /// Names of their own, so that both do not exclude each other. Runs with them must break.
    Apart,
}

impl NamesOfOthers {
    /// Returns what is appended to each name. A client gets it as an argument.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            NamesOfOthers::Shared => "",
            NamesOfOthers::Apart => "-apart",
        }
    }
}

/// Returns whether a client is the other library's: every second one is.
pub(super) const fn is_other(client: u16) -> bool {
    client % 2 == 1
}

/// How the product's clients and those of the other library shared the names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SharedWith {
    /// Holds of the other library's clients.
    pub(crate) holds: u64,
    /// How often a name passed from the product's clients to the other library's.
    pub(crate) to_them: u64,
    /// How often a name passed from the other library's clients to the product's.
    pub(crate) to_us: u64,
    /// How often two clients of different libraries believed at the same time that they held a name.
    pub(crate) overlaps: u64,
}

impl SharedWith {
    /// Counts the holds and hand-overs in a history.
    pub(super) fn of(history: &History) -> SharedWith {
        let mut stays: Vec<Section> = history.stays().collect();
        stays.sort_by_key(|stay| (stay.name, stay.won));
        let is_other = |stay: &Section| is_other(stay.process.client);
        let passes = |from_other: bool| {
            let pairs = stays.iter().zip(stays.iter().skip(1));
            let passes = pairs.filter(|(a, b)| is_hand_over(a, b));
            let passed =
                passes.filter(|(a, b)| is_other(a) == from_other && is_other(b) != from_other);
            passed.count() as u64
        };
        SharedWith {
            holds: stays.iter().filter(|stay| is_other(stay)).count() as u64,
            to_them: passes(false),
            to_us: passes(true),
            overlaps: overlaps(&stays),
        }
    }

    /// Returns the counts in words.
    pub(crate) fn sentence(&self, holds: u64) -> String {
        let ours = holds.saturating_sub(self.holds);
        format!(
            "{ours} holds of this crate's clients, {} of Redisson's (odd numbers); {} hand-overs to Redisson, {} back",
            self.holds, self.to_them, self.to_us
        )
    }
}

/// Returns the number of holds that began while a client of the other library believed that it held the name in a way
/// that excludes them. `stays` is sorted by name and by the time when each was won.
fn overlaps(stays: &[Section]) -> u64 {
    use quorlock_sim_world::history::Access;
    let mut overlaps = 0;
    let mut name = None;
    // Until when clients of each library believed: as a writer, and as a reader.
    let mut until = [[0; 2]; 2];
    for stay in stays {
        let Some(believed) = stay.believed else {
            continue;
        };
        if name != Some(stay.name) {
            (name, until) = (Some(stay.name), [[0; 2]; 2]);
        }
        let reads = stay.access == Access::Read;
        let [ours, others] = &mut until;
        let (own, [writer, reader]) = if is_other(stay.process.client) {
            (others, *ours)
        } else {
            (ours, *others)
        };
        overlaps += u64::from(stay.won < writer || (!reads && stay.won < reader));
        let [own_writer, own_reader] = own;
        let own = if reads { own_reader } else { own_writer };
        *own = believed.max(*own);
    }
    overlaps
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorlock_sim_world::history::{Access, HoldId, NameId, Process};

    fn stay(client: u16, access: Access, (won, believed): (u64, u64)) -> Section {
        Section {
            process: Process {
                client,
                restarts: 0,
            },
            hold: HoldId(0),
            name: NameId(0),
            won,
            entered: won,
            believed: Some(believed),
            left: believed,
            access,
            under: HoldId::NONE,
        }
    }

    fn shared(stays: &[(u16, Access, (u64, u64))]) -> SharedWith {
        let stays = stays
            .iter()
            .map(|(client, access, span)| stay(*client, *access, *span));
        SharedWith::of(&History {
            sections: stays.collect(),
            ..History::default()
        })
    }

    #[test]
    fn hand_overs_are_counted_in_both_directions() {
        let alone = Access::Alone;
        let shared = shared(&[
            (0, alone, (1, 2)),
            (1, alone, (3, 4)),
            (3, alone, (5, 6)),
            (2, alone, (7, 8)),
            (5, alone, (9, 10)),
        ]);
        let counts = (shared.holds, shared.to_them, shared.to_us, shared.overlaps);
        assert_eq!(counts, (3, 2, 1, 0));
    }

    #[test]
    fn readers_beside_each_other_pass_nothing() {
        let (read, write) = (Access::Read, Access::Write);
        let shared = shared(&[(0, read, (1, 9)), (1, read, (2, 9)), (2, write, (10, 11))]);
        assert_eq!((shared.holds, shared.to_them, shared.to_us), (1, 0, 1));
    }

    #[test]
    fn only_clients_of_different_libraries_overlap_each_other() {
        let overlaps = |a: (u16, Access), b: (u16, Access)| {
            shared(&[(a.0, a.1, (1, 5)), (b.0, b.1, (4, 6))]).overlaps
        };
        let (alone, read, write) = (Access::Alone, Access::Read, Access::Write);
        assert_eq!(overlaps((0, alone), (1, alone)), 1);
        assert_eq!(overlaps((1, alone), (0, alone)), 1);
        assert_eq!(overlaps((0, alone), (2, alone)), 0);
        assert_eq!(overlaps((0, read), (1, read)), 0);
        assert_eq!(overlaps((0, read), (1, write)), 1);
        assert_eq!(overlaps((1, write), (2, read)), 1);
    }
}
