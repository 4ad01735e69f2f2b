//! Once everything works again the lock is acquired within a bound.

use super::{Property, Violation, moment};
use crate::history::{Action, History, Outcome};
use crate::plan::time::Span;

pub(super) fn check(history: &History) -> Option<Violation> {
    let (from, to) = (history.healed, history.progress_due);
    let asked = |action| matches!(action, Action::Acquire | Action::Try);
    let in_time = |at: u64| from <= at && at <= to;
    let has_asked = history
        .operations
        .iter()
        .any(|op| asked(op.action) && from < op.completed);
    let was_granted = history
        .operations
        .iter()
        .any(|op| asked(op.action) && op.outcome == Outcome::Ok && in_time(op.completed));
    if !history.demands_progress || !has_asked || was_granted {
        return None;
    }
    Some(Violation {
        property: Property::Progress,
        at: Span::nanos(to),
        processes: Vec::new(),
        name: None,
        story: format!(
            "everything worked again at {}, and nobody had acquired anything by {}",
            moment(from),
            moment(to)
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checker::samples::{acquired, history};

    #[test]
    fn one_acquisition_in_time_is_enough() {
        let mut history = history(Vec::new());
        (history.healed, history.progress_due) = (100, 200);
        history.demands_progress = true;
        history.operations = vec![acquired(90, 150, Outcome::Ok)];
        assert_eq!(check(&history), None);
    }

    #[test]
    fn none_in_time_is_found() {
        for operation in [
            acquired(90, 201, Outcome::Ok),
            acquired(90, 150, Outcome::Fail),
            acquired(90, u64::MAX, Outcome::Indeterminate),
        ] {
            let mut history = history(Vec::new());
            (history.healed, history.progress_due) = (100, 200);
            history.demands_progress = true;
            history.operations = vec![acquired(0, 50, Outcome::Ok), operation];
            assert_eq!(check(&history).unwrap().property, Property::Progress);
        }
    }

    #[test]
    fn a_run_in_which_nobody_asked_says_nothing() {
        let mut history = history(Vec::new());
        history.demands_progress = true;
        assert_eq!(check(&history), None);
    }

    #[test]
    fn a_run_that_ends_before_it_is_due_says_nothing() {
        let mut history = history(Vec::new());
        (history.healed, history.progress_due) = (100, 200);
        history.operations = vec![acquired(90, 150, Outcome::Fail)];
        assert_eq!(check(&history), None);
    }
}
