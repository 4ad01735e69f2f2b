//! The leases that the requests of each hold stated, by request number.

use std::collections::{BTreeMap, VecDeque};

use quorlock::OwnerId;

/// A number and the lease in milliseconds that was stated under it.
type Statement = (u64, u64);

/// The lease that an owner stated under each number. The claims of one hold share their numbers across all nodes.
#[derive(Debug, Default)]
pub struct Statements {
    /// The statements of each owner, in the order of their numbers.
    stated: BTreeMap<OwnerId, Vec<Statement>>,
    /// The most recent statements. A request reaches all nodes within milliseconds, so most requests repeat one of these.
    recent: VecDeque<(OwnerId, Statement)>,
}

/// The number of recent statements.
const RECENT: usize = 8;

impl Statements {
    pub(crate) fn clear(&mut self) {
        self.stated.clear();
        self.recent.clear();
    }

    /// Records a request. If its lease is out of order, returns the two requests, each with number and lease, starting
    /// with the smaller number.
    pub fn note(&mut self, owner: OwnerId, number: u64, lease: u64) -> Option<[Statement; 2]> {
        let this = (number, lease);
        if self.recent.contains(&(owner, this)) {
            return None;
        }
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back((owner, this));
        let stated = self.stated.entry(owner).or_default();
        let place = stated.binary_search_by_key(&number, |(number, _)| *number);
        let at = place.unwrap_or_else(|at| at);
        let same = match stated.get_mut(at).filter(|_| place.is_ok()) {
            Some(same) => Some(std::mem::replace(same, this)),
            None => {
                stated.insert(at, this);
                None
            }
        };
        let before = at.checked_sub(1).and_then(|before| stated.get(before));
        if let Some(before) = before.filter(|(_, longer)| lease < *longer) {
            return Some([*before, this]);
        }
        if let Some(after) = stated.get(at + 1).filter(|(_, shorter)| *shorter < lease) {
            return Some([this, *after]);
        }
        // A number belongs to one statement, so it cannot have two leases.
        let other = same.filter(|same| *same != this)?;
        Some([other, this])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(number: u64) -> OwnerId {
        let text = format!("00000000-0000-4000-8000-000000000001:{number}");
        text.parse().unwrap()
    }

    #[test]
    fn a_larger_number_with_a_shorter_lease_is_noted_in_either_order() {
        let shrunk = Some([(17, 5_000), (18, 1_000)]);
        let mut first = Statements::default();
        assert_eq!(first.note(owner(1), 17, 5_000), None);
        assert_eq!(first.note(owner(1), 18, 1_000), shrunk);
        let mut second = Statements::default();
        assert_eq!(second.note(owner(1), 18, 1_000), None);
        assert_eq!(second.note(owner(1), 17, 5_000), shrunk);
    }

    #[test]
    fn one_number_has_one_lease_and_owners_have_nothing_to_do_with_each_other() {
        let mut stated = Statements::default();
        for (number, lease) in [
            (1, 1_000),
            (17, 5_000),
            (16, 1_000),
            (16, 1_000),
            (20, 5_000),
        ] {
            assert_eq!(stated.note(owner(1), number, lease), None);
        }
        assert_eq!(stated.note(owner(2), 18, 1_000), None);
        let twice = Some([(16, 1_000), (16, 2_000)]);
        assert_eq!(stated.note(owner(1), 16, 2_000), twice);
    }
}
