//! At most one client is inside while it believes to hold the lock.

use super::{Property, Violation, moment};
use crate::history::{Access, History, Section};

/// Two stays under different holds of one name must not share a stretch of true time in which both believe.
pub(super) fn check(history: &History) -> Option<Violation> {
    let mut stays: Vec<(&Section, u64)> = history
        .sections
        .iter()
        .filter(|section| section.access == Access::Alone)
        .filter_map(|section| Some((section, section.believed?)))
        .collect();
    stays.sort_by_key(|(section, _)| (section.name, section.entered));
    let mut longest: Option<(&Section, u64)> = None;
    for (section, believed) in stays {
        let Some((other, until)) = longest.filter(|(other, _)| other.name == section.name) else {
            longest = Some((section, believed));
            continue;
        };
        if section.entered < until && section.hold != other.hold {
            let story = format!(
                "{} entered at {} and still found its lock held at {}; {} entered at {} and found it held too",
                other.process,
                moment(other.entered),
                moment(until),
                section.process,
                moment(section.entered),
            );
            let violation = Violation::new(
                Property::Exclusion,
                section.entered,
                history,
                section.name,
                story,
            );
            return Some(violation.by(&[other.process, section.process]));
        }
        if until < believed {
            longest = Some((section, believed));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checker::samples::{believed, history};

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
    fn a_long_stay_is_not_forgotten_behind_a_short_one() {
        let mut inner = believed(0, 0, 1, 2);
        inner.hold = crate::history::HoldId(0);
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
        elsewhere.name = crate::history::NameId(1);
        assert_eq!(
            check(&history(vec![believed(0, 0, 0, 10), elsewhere])),
            None
        );
    }
}
