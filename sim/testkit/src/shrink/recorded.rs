//! The record of a search, with which a plan is shrunk again without a run.

use std::rc::Rc;

use super::judge::Judge;
use super::size::{Size, Taken};
use quorlock_sim_plan::Plan;
use quorlock_sim_plan::time::SimTime;

/// Accepts the candidates that the recorded search accepted.
pub(super) struct Recorded<'a> {
    first: Taken,
    rest: &'a [Taken],
}

impl<'a> Recorded<'a> {
    pub(super) fn new(taken: &'a [Taken]) -> Self {
        let nothing = Taken {
            attempt: 0,
            at: SimTime::ZERO,
        };
        match taken {
            [first, rest @ ..] => Recorded {
                first: *first,
                rest,
            },
            [] => Recorded {
                first: nothing,
                rest: &[],
            },
        }
    }

    /// Returns the size of the run that was shrunk.
    pub(super) fn size(&self) -> Size {
        self.first.size()
    }
}

impl Judge for Recorded<'_> {
    fn judge(
        &mut self,
        attempt: u32,
        plan: &Rc<Plan>,
        _is_better: &dyn Fn(&Size) -> bool,
    ) -> Option<(Rc<Plan>, Size)> {
        let [next, rest @ ..] = self.rest else {
            return None;
        };
        if next.attempt != attempt {
            return None;
        }
        self.rest = rest;
        Some((plan.spelled_out(), next.size()))
    }
}
