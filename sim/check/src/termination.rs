//! Termination: a run ends by itself.

use super::{Property, Violation, moment};
use quorlock_sim_plan::time::SimTime;
use quorlock_sim_world::history::History;

/// Finds a run that did not end by itself and was stopped.
pub(super) fn check(history: &History) -> Option<Violation> {
    let endless = history.endless?;
    let process = endless.process;
    let last = process.map_or("the last thing was an event".to_owned(), |process| {
        format!("{process} was the last to run")
    });
    Some(Violation {
        property: Property::Termination,
        at: SimTime::nanos(endless.at),
        processes: process.into_iter().collect(),
        name: None,
        story: format!(
            "millions of steps happened while hardly any time passed, and the run was stopped at {}; {last}",
            moment(endless.at)
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::history;
    use quorlock_sim_world::history::{Endless, Process};

    #[test]
    fn a_run_that_was_stopped_has_not_ended_and_names_who_went_on() {
        let mut history = history(Vec::new());
        assert_eq!(check(&history), None);
        let process = Process {
            client: 2,
            restarts: 0,
        };
        history.endless = Some(Endless {
            at: 7_000_000,
            process: Some(process),
        });
        let violation = check(&history).unwrap();
        assert!(violation.property.is_liveness());
        assert_eq!(violation.processes, [process]);
        assert!(violation.story.ends_with("client 2 was the last to run"));
    }
}
