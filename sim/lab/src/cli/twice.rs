//! The option to make each run twice.

use clap::Args;

use crate::simulation;
use quorlock_sim_check::determinism::{self, Difference};
use quorlock_sim_check::run::Run;

/// Whether each run is made twice.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct Twice {
    /// Make each run twice, and compare the two event for event. A difference ends the command with exit code 5 and names
    /// the first event that differs.
    #[arg(long)]
    check_determinism: bool,
}

impl Twice {
    /// Makes a run again, if that was asked for.
    pub(super) fn check(self, run: &Run) -> Result<(), Box<Difference>> {
        match self.check_determinism {
            true => determinism::check(run, || simulation::run(&run.plan)),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::cli::CliError;
    use crate::study::runs::RunsError;
    use quorlock_sim_plan::generator::PlanGenerator;

    #[test]
    fn a_run_that_was_not_of_its_plan_is_told_by_its_first_event_and_has_an_exit_code() {
        let plan = |seed| Rc::new(PlanGenerator::default().plan(seed));
        let run = simulation::run(&plan(1));
        let twice = Twice {
            check_determinism: true,
        };
        assert_eq!(twice.check(&run), Ok(()));
        let mut other = simulation::run(&plan(2));
        other.plan = Rc::clone(&run.plan);
        let difference = twice.check(&other).unwrap_err();
        let story = difference.story.clone().unwrap();
        assert_ne!(story.first, story.second);
        assert_eq!(CliError::from(difference.clone()).exit_code(), 5);
        assert_eq!(CliError::from(RunsError::from(difference)).exit_code(), 5);
    }
}
