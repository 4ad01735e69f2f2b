//! The properties that a user's test states with `always!` and `eventually!`.

use super::{Property, Violation, moment};
use quorlock_sim_plan::time::SimTime;
use quorlock_sim_world::history::History;
use quorlock_sim_world::history::own::{Modality, StatedProperty};

/// Finds a property of `always!` that was false at a check. If there are several, the earliest violation is reported.
pub(super) fn always(history: &History) -> Option<Violation> {
    let stated = of(history, Modality::Always);
    let broken = stated.filter_map(|stated| stated.broken.as_ref().map(|breach| (stated, breach)));
    let (stated, breach) = broken.min_by_key(|(_, breach)| breach.at)?;
    Some(Violation {
        property: Property::Always,
        at: SimTime::nanos(breach.at),
        processes: breach.process.into_iter().collect(),
        name: Some(stated.name.clone()),
        story: breach.story.clone(),
    })
}

/// Finds a property of `eventually!` that was never true.
pub(super) fn eventually(history: &History) -> Option<Violation> {
    let mut stated = of(history, Modality::Eventually);
    let unmet = stated.find(|stated| stated.holds == 0)?;
    let breach = unmet.broken.as_ref();
    let last = breach.map_or(String::new(), |breach| format!("; first: {}", breach.story));
    Some(Violation {
        property: Property::Eventually,
        at: SimTime::nanos(history.progress_due.max(unmet.begun)),
        processes: breach
            .and_then(|breach| breach.process)
            .into_iter()
            .collect(),
        name: Some(unmet.name.clone()),
        story: format!(
            "it was first checked at {}, and was true in none of {} checks{last}",
            moment(unmet.begun),
            unmet.checks
        ),
    })
}

fn of(history: &History, modality: Modality) -> impl Iterator<Item = &StatedProperty> {
    let stated = history.stated.iter();
    stated.filter(move |stated| stated.modality == modality)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{history, process};
    use quorlock_sim_world::history::own::Breach;

    fn stated(modality: Modality, name: &str, holds: u64, broken: Option<u64>) -> StatedProperty {
        StatedProperty {
            modality,
            name: name.to_owned(),
            begun: 5,
            checks: 7,
            holds,
            broken: broken.map(|at| Breach {
                at,
                process: Some(process(1)),
                story: "stock is -1".to_owned(),
            }),
        }
    }

    #[test]
    fn a_property_that_was_false_once_is_broken_and_the_first_one_is_told() {
        let mut history = history(Vec::new());
        history.stated = vec![
            stated(Modality::Always, "a", 6, Some(40)),
            stated(Modality::Always, "b", 6, Some(30)),
            stated(Modality::Always, "c", 7, None),
            stated(Modality::Sometimes, "d", 1, Some(10)),
        ];
        let violation = always(&history).unwrap();
        assert_eq!(violation.name.as_deref(), Some("b"));
        assert_eq!(violation.processes, [process(1)]);
        assert_eq!(violation.at.as_nanos(), 30);
        assert_eq!(eventually(&history), None);
    }

    #[test]
    fn what_must_come_has_come_once_it_was_true() {
        let mut history = history(Vec::new());
        history.stated = vec![stated(Modality::Eventually, "a", 1, Some(40))];
        assert_eq!(eventually(&history), None);
        history
            .stated
            .push(stated(Modality::Eventually, "b", 0, Some(20)));
        let violation = eventually(&history).unwrap();
        assert!(violation.property.is_liveness());
        assert_eq!(violation.name.as_deref(), Some("b"));
        assert_eq!(always(&history), None);
    }
}
