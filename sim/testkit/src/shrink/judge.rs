//! Judges of candidates: a candidate is accepted by its run, or by the record of an earlier search.

use std::rc::Rc;

use super::size::{Identity, Size, Taken};
use quorlock_sim_check::run::Run;
use quorlock_sim_plan::Plan;

/// Decides which candidates are accepted.
pub(super) trait Judge {
    /// Returns the plan that was run and its size if the candidate is accepted, or `None` if it is not. `attempt` is
    /// the number of the candidate, from 1.
    fn judge(
        &mut self,
        attempt: u32,
        plan: &Rc<Plan>,
        is_better: &dyn Fn(&Size) -> bool,
    ) -> Option<(Rc<Plan>, Size)>;
}

/// Runs each candidate, and keeps the best run so far.
pub(super) struct Runs<'a> {
    run: &'a dyn Fn(&Rc<Plan>) -> Run,
    best: Run,
    identity: Identity,
    taken: Vec<Taken>,
}

impl<'a> Runs<'a> {
    pub(super) fn new(run: &'a dyn Fn(&Rc<Plan>) -> Run, first: Run, identity: Identity) -> Self {
        let taken = Taken {
            attempt: 0,
            at: Size::of(&first).at,
        };
        Runs {
            run,
            best: first,
            identity,
            taken: vec![taken],
        }
    }

    pub(super) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Returns the plan of the best run so far.
    pub(super) fn plan(&self) -> Rc<Plan> {
        Rc::clone(&self.best.plan)
    }

    pub(super) fn end(self) -> (Run, Identity, Vec<Taken>) {
        (self.best, self.identity, self.taken)
    }
}

impl Judge for Runs<'_> {
    fn judge(
        &mut self,
        attempt: u32,
        plan: &Rc<Plan>,
        is_better: &dyn Fn(&Size) -> bool,
    ) -> Option<(Rc<Plan>, Size)> {
        let run = (self.run)(plan);
        let size = Size::of(&run);
        if !self.identity.is_of(&run) || !is_better(&size) {
            return None;
        }
        self.best = run;
        let at = size.at;
        self.taken.push(Taken { attempt, at });
        Some((self.plan(), size))
    }
}
