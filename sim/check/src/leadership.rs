//! Leadership: at most one leader believes that it leads.

use super::{Property, Violation, moment};
use quorlock_sim_world::history::{History, Reign};

/// Finds two terms of one name that overlap in true time. A term lasts from the election until the last check that
/// found the leader leading.
pub(super) fn check(history: &History) -> Option<Violation> {
    let reigns = history.reigns.iter();
    let mut reigns: Vec<(&Reign, u64)> = reigns
        .filter_map(|reign| Some((reign, reign.believed?)))
        .collect();
    reigns.sort_by_key(|(reign, _)| reign.elected);
    // For each name, the leader that has the latest end so far.
    let mut longest: Vec<Option<(&Reign, u64)>> = vec![None; history.names.len()];
    for (reign, believed) in reigns {
        let Some(longest) = longest.get_mut(usize::from(reign.name.0)) else {
            continue;
        };
        if let Some((other, until)) = longest.filter(|(_, until)| reign.elected < *until) {
            let story = format!(
                "{} was elected at {} and still found that it leads at {}; {} was elected at {}",
                other.process,
                moment(other.elected),
                moment(until),
                reign.process,
                moment(reign.elected),
            );
            let (at, name) = (reign.elected, reign.name);
            let violation = Violation::new(Property::Leadership, at, history, name, story);
            return Some(violation.by(&[other.process, reign.process]));
        }
        if longest.is_none_or(|(_, until)| until < believed) {
            *longest = Some((reign, believed));
        }
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
    fn leaders_one_after_the_other_are_fine() {
        let reigns = vec![reigned(0, 0, 10, 1), reigned(1, 10, 20, 2)];
        assert_eq!(of(reigns), None);
    }

    #[test]
    fn leaders_at_one_time_are_found_in_whatever_order_they_were_recorded() {
        for (first, second) in [((0, 10), (9, 20)), ((0, 10), (3, 3)), ((5, 10), (0, 6))] {
            let reigns = vec![
                reigned(0, first.0, first.1, 1),
                reigned(1, second.0, second.1, 2),
            ];
            let violation = of(reigns).unwrap();
            assert_eq!(violation.property, Property::Leadership);
            assert_eq!(violation.processes.len(), 2);
        }
    }

    #[test]
    fn a_leader_that_is_told_too_late_and_never_believes_leads_beside_nobody() {
        let mut late = reigned(1, 5, 5, 2);
        late.believed = None;
        assert_eq!(of(vec![reigned(0, 0, 10, 3), late]), None);
    }

    #[test]
    fn a_long_term_is_not_forgotten_behind_a_short_one_and_other_names_have_leaders_of_their_own() {
        let mut elsewhere = reigned(1, 1, 2, 2);
        elsewhere.name = NameId(1);
        assert_eq!(of(vec![reigned(0, 0, 100, 1), elsewhere.clone()]), None);
        let reigns = vec![reigned(0, 0, 100, 1), elsewhere, reigned(2, 50, 60, 3)];
        assert_eq!(of(reigns).unwrap().at.as_nanos(), 50);
    }
}
