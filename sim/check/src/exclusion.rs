//! Exclusion: at most one client believes that it holds the lock.

use super::{Property, Violation, moment};
use quorlock_sim_world::history::{Access, History, Section};

/// Finds two sections under different holds of one name that overlap in true time. A section lasts from when its guard
/// was won until the last check that found the lock held.
pub(super) fn check(history: &History) -> Option<Violation> {
    let mut stays: Vec<(&Section, u64)> = history
        .sections
        .iter()
        .filter(|section| section.access == Access::Alone)
        .filter_map(|section| Some((section, section.believed?)))
        .collect();
    // The sections of all names are visited in the order of time, so that the first violation is reported, whatever
    // its name.
    stays.sort_by_key(|(section, _)| section.won);
    let mut longest: Vec<Option<(&Section, u64)>> = vec![None; history.names.len()];
    for (section, believed) in stays {
        let Some(longest) = longest.get_mut(usize::from(section.name.0)) else {
            continue;
        };
        let Some((other, until)) = *longest else {
            *longest = Some((section, believed));
            continue;
        };
        // Nested sections of one hold overlap, and do not exclude each other.
        if section.won < until && section.hold != other.hold {
            let story = format!(
                "{} won its lock at {} and still found it held at {}; {} won it at {}",
                other.process,
                moment(other.won),
                moment(until),
                section.process,
                moment(section.won),
            );
            let (at, name) = (section.won, section.name);
            let violation = Violation::new(Property::Exclusion, at, history, name, story);
            return Some(violation.by(&[other.process, section.process]));
        }
        if until < believed {
            *longest = Some((section, believed));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{believed, history};

    #[test]
    fn stays_one_after_the_other_are_fine() {
        let sections = vec![
            believed(0, 0, 0, 10),
            believed(1, 1, 10, 20),
            believed(0, 2, 20, 20),
        ];
        assert_eq!(check(&history(sections)), None);
    }

    #[test]
    fn stays_that_overlap_are_not_in_whatever_order_they_were_recorded() {
        for (first, second) in [((0, 10), (9, 20)), ((0, 10), (3, 3)), ((5, 10), (0, 6))] {
            let sections = vec![
                believed(0, 0, first.0, first.1),
                believed(1, 1, second.0, second.1),
            ];
            let violation = check(&history(sections)).unwrap();
            assert_eq!(violation.property, Property::Exclusion);
            assert_eq!(violation.processes.len(), 2);
        }
    }

    #[test]
    fn a_client_holds_its_lock_from_its_guard_on_and_not_only_inside() {
        // The guard was won at 5, and its client enters only after another client has entered and left.
        let mut dawdling = believed(0, 0, 30, 40);
        dawdling.won = 5;
        let violation = check(&history(vec![dawdling.clone(), believed(1, 1, 10, 20)])).unwrap();
        assert_eq!(violation.at.as_nanos(), 10);
        assert_eq!(check(&history(vec![dawdling, believed(1, 1, 2, 5)])), None);
    }

    #[test]
    fn a_long_stay_is_not_forgotten_behind_a_short_one() {
        let mut inner = believed(0, 0, 1, 2);
        inner.hold = quorlock_sim_world::history::HoldId(0);
        let sections = vec![believed(0, 0, 0, 100), inner, believed(1, 1, 50, 60)];
        assert!(check(&history(sections)).is_some());
    }

    #[test]
    fn one_hold_may_be_inside_twice_and_one_that_never_believed_does_not_count() {
        let mut unbelieving = believed(1, 1, 5, 5);
        unbelieving.believed = None;
        let sections = vec![believed(0, 0, 0, 10), believed(0, 0, 2, 8), unbelieving];
        assert_eq!(check(&history(sections)), None);
    }

    #[test]
    fn other_names_do_not_exclude_each_other() {
        let mut elsewhere = believed(1, 1, 5, 8);
        elsewhere.name = quorlock_sim_world::history::NameId(1);
        assert_eq!(
            check(&history(vec![believed(0, 0, 0, 10), elsewhere])),
            None
        );
    }
}
