//! Fencing: tokens are unique and grow, and a store never accepts a token that is smaller than one that it has seen.

use super::{Property, Violation, moment};
use quorlock_sim_world::history::{Accepted, Access, Grant, History};

pub(super) fn check(history: &History) -> Option<Violation> {
    let violations = [unique(history), growing(history), taken_in_order(history)];
    violations.into_iter().flatten().min_by_key(|v| v.at)
}

/// Returns all grants except those of readers, which carry the token of the last writer.
fn new_tokens(history: &History) -> impl Iterator<Item = &Grant> {
    let grants = history.grants.iter();
    grants.filter(|grant| grant.access != Access::Read)
}

/// Finds two holds of a name with the same token.
fn unique(history: &History) -> Option<Violation> {
    let mut grants: Vec<&Grant> = new_tokens(history).collect();
    grants.sort_by_key(|grant| (grant.name, grant.token, grant.won));
    let twice = grants.iter().zip(grants.iter().skip(1));
    let (a, b) = twice
        .filter(|(a, b)| a.name == b.name && a.token == b.token)
        .min_by_key(|(_, b)| b.won)?;
    let story = format!(
        "{} (at {}) and {} (at {}) both got token {}",
        a.process,
        moment(a.won),
        b.process,
        moment(b.won),
        b.token,
    );
    let violation = Violation::new(Property::Fencing, b.won, history, b.name, story);
    Some(violation.by(&[a.process, b.process]))
}

/// Finds a hold that was requested after another one was won, but has no larger token. Concurrent acquisitions may get
/// their tokens in any order.
fn growing(history: &History) -> Option<Violation> {
    let mut asked: Vec<&Grant> = new_tokens(history).collect();
    let mut won = asked.clone();
    asked.sort_by_key(|grant| (grant.name, grant.invoked));
    won.sort_by_key(|grant| (grant.name, grant.won));
    let mut won = won.into_iter().peekable();
    let mut largest: Option<&Grant> = None;
    let mut first: Option<(&Grant, &Grant)> = None;
    for grant in asked {
        if largest.is_some_and(|l| l.name != grant.name) {
            largest = None;
        }
        while let Some(earlier) = won.next_if(|w| (w.name, w.won) < (grant.name, grant.invoked)) {
            if earlier.name == grant.name && largest.is_none_or(|l| l.token < earlier.token) {
                largest = Some(earlier);
            }
        }
        if let Some(earlier) = largest.filter(|l| grant.token <= l.token)
            && first.is_none_or(|(_, first)| grant.won < first.won)
        {
            first = Some((earlier, grant));
        }
    }
    let (earlier, grant) = first?;
    let story = format!(
        "{} asked at {}, when {} had got token {} already (at {}), and got {}",
        grant.process,
        moment(grant.invoked),
        earlier.process,
        earlier.token,
        moment(earlier.won),
        grant.token,
    );
    let violation = Violation::new(Property::Fencing, grant.won, history, grant.name, story);
    Some(violation.by(&[earlier.process, grant.process]))
}

/// Finds an accepted write whose token is smaller than a token that the store accepted before.
fn taken_in_order(history: &History) -> Option<Violation> {
    let mut largest: Vec<u64> = vec![0; history.names.len()];
    for write in &history.writes {
        let place = largest.get_mut(usize::from(write.name.0));
        let Some((largest, token)) = place.zip(write.token) else {
            continue;
        };
        if write.accepted == Accepted::Yes {
            if token < *largest {
                let story = format!(
                    "the store took token {token} of {} at {} after token {largest}",
                    write.process,
                    moment(write.at),
                );
                let violation =
                    Violation::new(Property::Fencing, write.at, history, write.name, story);
                return Some(violation.by(&[write.process]));
            }
            *largest = token;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{granted, history, written};
    use quorlock_sim_world::history::NameId;

    fn of(grants: Vec<Grant>) -> History {
        let mut history = history(Vec::new());
        history.grants = grants;
        history
    }

    #[test]
    fn tokens_that_grow_are_fine_and_concurrent_ones_may_have_any_order() {
        let grants = vec![
            granted(0, 0, 10, 5),
            granted(1, 0, 12, 4),
            granted(2, 13, 14, 6),
        ];
        assert_eq!(check(&of(grants)), None);
    }

    #[test]
    fn a_token_given_out_twice_is_found() {
        let grants = vec![granted(0, 0, 10, 5), granted(1, 0, 12, 5)];
        assert_eq!(check(&of(grants)).unwrap().property, Property::Fencing);
    }

    #[test]
    fn a_token_that_regresses_is_found_in_whatever_order_it_was_recorded() {
        let late = granted(1, 11, 12, 4);
        let early = granted(0, 0, 10, 5);
        for grants in [vec![early.clone(), late.clone()], vec![late, early]] {
            assert!(check(&of(grants)).is_some());
        }
    }

    #[test]
    fn every_name_has_numbers_of_its_own() {
        let mut elsewhere = granted(1, 11, 12, 4);
        elsewhere.name = NameId(1);
        assert_eq!(check(&of(vec![granted(0, 0, 10, 5), elsewhere])), None);
        let mut first = granted(2, 0, 1, 9);
        first.name = NameId(1);
        let mut second = granted(3, 2, 3, 8);
        second.name = NameId(1);
        assert!(check(&of(vec![granted(0, 0, 10, 5), first, second])).is_some());
    }

    #[test]
    fn a_store_that_goes_back_is_found() {
        let mut history = history(Vec::new());
        history.writes = vec![written(0, 1, Some(7)), written(1, 2, Some(6))];
        assert!(check(&history).is_some());
        history.writes[1].accepted = Accepted::No;
        assert_eq!(check(&history), None);
    }
}
