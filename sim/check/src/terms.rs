//! Terms: the terms of leaders grow strictly with each election.

use super::{Property, Violation, moment};
use quorlock_sim_world::history::{History, Reign};

/// Finds a leader that was elected later than another leader of the same name, but has no larger term.
///
/// Where at most one client leads, this is stronger than the property of fencing tokens. Tokens need not be in the
/// order in which concurrent acquisitions end.
pub(super) fn check(history: &History) -> Option<Violation> {
    // A leader that learns of its election only after the end of its term writes nothing, so it is ignored.
    let reigns = history.reigns.iter();
    let mut reigns: Vec<&Reign> = reigns.filter(|reign| reign.believed.is_some()).collect();
    reigns.sort_by_key(|reign| reign.elected);
    let mut largest: Vec<Option<&Reign>> = vec![None; history.names.len()];
    for reign in reigns {
        let Some(largest) = largest.get_mut(usize::from(reign.name.0)) else {
            continue;
        };
        if let Some(earlier) = largest.filter(|earlier| reign.term <= earlier.term) {
            let story = format!(
                "{} was elected at {} for term {}, after {} had been elected at {} for term {}",
                reign.process,
                moment(reign.elected),
                reign.term,
                earlier.process,
                moment(earlier.elected),
                earlier.term,
            );
            let (at, name) = (reign.elected, reign.name);
            let violation = Violation::new(Property::Terms, at, history, name, story);
            return Some(violation.by(&[earlier.process, reign.process]));
        }
        *largest = Some(reign);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{history, reigned};
    use quorlock_sim_world::history::NameId;

    fn of(reigns: Vec<Reign>) -> Option<Violation> {
        let mut history = history(Vec::new());
        history.reigns = reigns;
        check(&history)
    }

    #[test]
    fn terms_that_grow_are_fine_and_names_have_terms_of_their_own() {
        let mut elsewhere = reigned(2, 15, 16, 1);
        elsewhere.name = NameId(1);
        let reigns = vec![reigned(0, 0, 10, 5), elsewhere, reigned(1, 20, 30, 9)];
        assert_eq!(of(reigns), None);
    }

    #[test]
    fn a_term_that_repeats_or_falls_is_found_in_whatever_order_it_was_recorded() {
        for term in [5, 4] {
            let (early, late) = (reigned(0, 0, 10, 5), reigned(1, 20, 30, term));
            for reigns in [vec![early.clone(), late.clone()], vec![late, early]] {
                let violation = of(reigns).unwrap();
                assert_eq!(violation.property, Property::Terms);
                assert_eq!(violation.at.as_nanos(), 20);
            }
        }
    }
}
