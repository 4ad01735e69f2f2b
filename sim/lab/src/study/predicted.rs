//! Compares the simulator's predictions for a class of faults with observations on real servers.

mod print;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use crate::chaos::run::Observed;
use crate::simulation::run;
use crate::study::pool::share_out;
pub(crate) use print::PrintedMatrix;
use quorlock_sim_check::{check_one, overlaps};
use quorlock_sim_plan::Plan;
use quorlock_sim_plan::property::Property;

/// The results of one lock under the storms of one class.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Compared {
    pub(crate) class: String,
    pub(crate) lock: String,
    pub(crate) seed: u64,
    pub(crate) scale: u32,
    /// The expected outcome of the lock under the class.
    pub(crate) expected: Expected,
    /// The commit of the product that was tested.
    pub(crate) commit: String,
    pub(crate) simulated: Simulated,
    pub(crate) observed: Observed,
}

/// The expected outcome of a storm.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Expected {
    /// Exclusion holds, and the order of tokens holds, too, if `order` is true.
    Holds { order: bool },
    /// Exclusion breaks: the lock is the control.
    Breaks,
    /// The lock claims nothing under the class.
    Anything,
}

/// The simulator's results for storms of the same class and length, with consecutive seeds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Simulated {
    pub(crate) runs: u64,
    /// The number of runs in which exclusion broke.
    pub(crate) exclusion: u64,
    /// The number of runs in which the order of tokens broke.
    pub(crate) fencing: u64,
}

/// The results that are kept in the repository: for readers, for the figures of pages, and for the next comparison,
/// which continues from them.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Results {
    pub(crate) command: String,
    pub(crate) version: String,
    pub(crate) commit: String,
    pub(crate) figures: BTreeMap<String, String>,
    pub(crate) cells: Vec<Compared>,
}

/// The relation of an observation to the prediction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Agreement {
    /// The property held in both, or broke in both.
    Agrees,
    /// The simulator predicts that the property may break, but it did not break in this time.
    NotMet,
    /// The property broke, although the simulator predicts that it does not.
    Disagrees,
}

impl Simulated {
    /// Runs these plans on this number of threads and counts the runs that broke a property.
    pub(crate) fn of(threads: usize, plans: impl Iterator<Item = Plan> + Send) -> Simulated {
        let breaks = |plan| {
            let run = run(&Rc::new(plan));
            let breaks = |property| check_one(property, &run.history).is_some();
            let is_order_broken = breaks(Property::Fencing) || breaks(Property::Terms);
            (overlaps(&run.history), is_order_broken)
        };
        let mut simulated = Simulated::default();
        share_out(threads, plans, breaks, |(exclusion, fencing)| {
            simulated.runs += 1;
            simulated.exclusion += u64::from(exclusion);
            simulated.fencing += u64::from(fencing);
            ControlFlow::Continue(())
        });
        simulated
    }
}

impl Results {
    /// Reads the results from a file. Returns empty results if the file does not exist.
    ///
    /// # Errors
    /// Returns a description of the error in the file.
    pub(crate) fn read(path: &Path) -> Result<Results, String> {
        if !path.exists() {
            return Ok(Results::default());
        }
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|error| format!("{}: {error}", path.display()))?;
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Returns the cell of a class and a lock.
    pub(crate) fn cell(&self, class: &str, lock: &str) -> Option<&Compared> {
        let mut cells = self.cells.iter();
        cells.find(|cell| cell.class == class && cell.lock == lock)
    }

    /// Replaces the results of the same lock under the same class.
    pub(crate) fn put(&mut self, cell: Compared) {
        self.cells
            .retain(|old| (&old.class, &old.lock) != (&cell.class, &cell.lock));
        self.cells.push(cell);
    }
}

impl Compared {
    /// Returns the deviation from what is expected, with its exit code.
    pub(crate) fn wrong(&self) -> Option<(u8, String)> {
        self.expected.wrong(&self.observed)
    }

    /// Compares the observation with the prediction. `matrix` is the share in the matrix, if the matrix has one.
    pub(crate) fn agreement(&self, matrix: Option<&str>) -> Agreement {
        // The simulator has no clients of another library, so a control with them is compared with what is expected.
        let is_control = self.simulated.runs == 0 && self.expected == Expected::Breaks;
        let may_break = is_control
            || 0 < self.simulated.exclusion
            || matrix.is_some_and(|share| !is_zero(share));
        match (may_break, self.observed.exclusion.is_some()) {
            (true, true) | (false, false) => Agreement::Agrees,
            (true, false) => Agreement::NotMet,
            (false, true) => Agreement::Disagrees,
        }
    }
}

/// Returns whether a cell of the matrix states that nothing broke: `**0** (< 0.38)` or `0 (< 0.38)`.
fn is_zero(share: &str) -> bool {
    let number = share.split_whitespace().next().unwrap_or_default();
    number.trim_matches('*') == "0"
}

impl Expected {
    /// Returns the deviation from what is expected, with its exit code.
    pub(crate) fn wrong(self, observed: &Observed) -> Option<(u8, String)> {
        let broke = |order: bool| {
            // A store that refuses smaller tokens needs their order to keep updates apart.
            let of_order = [&observed.fencing, &observed.usage];
            let of_order = of_order.into_iter().filter(|_| order);
            let broke = [&observed.exclusion].into_iter().chain(of_order);
            let mut broke = broke.chain([&observed.orphans]).flatten();
            broke.next().map(|broke| broke.story.clone())
        };
        match self {
            Expected::Holds { order } if broke(order).is_some() => {
                broke(order).map(|story| (2, story))
            }
            // The control is judged by exclusion alone.
            Expected::Breaks if observed.exclusion.is_none() => Some((
                4,
                "the control did not break, so nothing was shown".to_owned(),
            )),
            Expected::Holds { .. } if observed.bereft.is_some() || observed.delayed.is_some() => {
                let broke = observed.bereft.as_ref().or(observed.delayed.as_ref());
                broke.map(|broke| (2, broke.story.clone()))
            }
            _ if observed.overrun.is_some() || observed.fairness.is_some() => {
                let broke = observed.overrun.as_ref().or(observed.fairness.as_ref());
                broke.map(|broke| (2, broke.story.clone()))
            }
            _ if !observed.complaints.is_empty() => Some((2, observed.complaints.join("; "))),
            _ => {
                let vacuous = observed.vacuous()?;
                Some((4, format!("{}, so nothing was shown", vacuous.what())))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chaos::run::Break;

    fn compared(simulated: u64, has_broken: bool) -> Compared {
        let broke = Break {
            after: 1.5,
            story: "two at a time".to_owned(),
        };
        Compared {
            class: "restarts, amnesia".to_owned(),
            lock: "ours".to_owned(),
            seed: 7,
            scale: 10,
            expected: Expected::Holds { order: true },
            commit: String::new(),
            simulated: Simulated {
                runs: 10,
                exclusion: simulated,
                fencing: 0,
            },
            observed: Observed {
                seconds: 60,
                holds: 100,
                hand_overs: 80,
                faults: 60,
                during_holds: 30,
                exclusion: has_broken.then_some(broke),
                ..Observed::default()
            },
        }
    }

    #[test]
    fn what_breaks_though_the_simulator_says_that_it_does_not_disagrees() {
        let held = Some("**0** (< 0.38)");
        assert_eq!(compared(0, true).agreement(held), Agreement::Disagrees);
        assert_eq!(compared(0, false).agreement(held), Agreement::Agrees);
        assert_eq!(
            compared(0, true).agreement(Some("5.30 (4.07 to 6.87)")),
            Agreement::Agrees
        );
        assert_eq!(
            compared(0, false).agreement(Some("5.30 (4.07 to 6.87)")),
            Agreement::NotMet
        );
        assert_eq!(compared(3, true).agreement(None), Agreement::Agrees);
        assert_eq!(compared(0, true).agreement(None), Agreement::Disagrees);
    }

    #[test]
    fn a_claim_that_breaks_a_control_that_holds_and_too_little_are_wrong() {
        let code = |cell: &Compared| cell.wrong().map(|(code, _)| code);
        assert_eq!(code(&compared(0, false)), None);
        assert_eq!(code(&compared(0, true)), Some(2));
        let mut control = compared(0, false);
        control.expected = Expected::Breaks;
        assert_eq!(code(&control), Some(4));
        control.observed.exclusion = compared(0, true).observed.exclusion;
        assert_eq!(code(&control), None);
        for less in [
            |observed: &mut Observed| observed.holds = 19,
            |observed: &mut Observed| observed.hand_overs = 9,
            |observed: &mut Observed| observed.during_holds = 3,
        ] {
            let mut cell = compared(0, false);
            less(&mut cell.observed);
            assert_eq!(code(&cell), Some(4));
        }
    }

    #[test]
    fn a_client_that_complains_is_wrong() {
        let mut cell = compared(0, false);
        cell.observed.complaints = vec!["2 clients did not end".to_owned()];
        let wrong = Some((2, "2 clients did not end".to_owned()));
        assert_eq!(cell.wrong(), wrong);
    }

    #[test]
    fn a_claim_that_is_left_and_an_update_that_is_lost_are_wrong_for_a_lock_that_holds() {
        let broke = compared(0, true).observed.exclusion;
        let mut left = compared(0, false);
        left.observed.orphans = broke.clone();
        let mut lost = compared(0, false);
        lost.observed.usage = broke;
        for cell in [&mut left, &mut lost] {
            assert_eq!(cell.wrong().map(|(code, _)| code), Some(2));
            cell.expected = Expected::Anything;
            assert_eq!(cell.wrong(), None);
        }
        left.expected = Expected::Holds { order: false };
        lost.expected = Expected::Holds { order: false };
        assert_eq!(left.wrong().map(|(code, _)| code), Some(2));
        assert_eq!(lost.wrong(), None);
    }

    #[test]
    fn a_wait_that_is_overrun_is_wrong_whatever_else_is_expected() {
        let mut cell = compared(0, false);
        cell.observed.overrun = Some(Break {
            after: 2.5,
            story: "client 3 returned too late".to_owned(),
        });
        for expected in [Expected::Holds { order: true }, Expected::Anything] {
            cell.expected = expected;
            let wrong = cell.wrong();
            assert_eq!(wrong, Some((2, "client 3 returned too late".to_owned())));
        }
    }

    #[test]
    fn waits_that_are_too_few_show_nothing() {
        let mut cell = compared(0, false);
        let counts = |judged, excused| crate::chaos::run::WaitCounts {
            judged,
            excused,
            ..Default::default()
        };
        cell.observed.waits = Some(counts(9, 0));
        assert_eq!(cell.wrong().map(|(code, _)| code), Some(4));
        cell.observed.waits = Some(counts(9, 1));
        assert_eq!(cell.wrong(), None);
    }

    #[test]
    fn results_are_merged_cell_by_cell() {
        let mut results = Results::default();
        results.put(compared(0, false));
        results.put(compared(4, true));
        assert_eq!(results.cells.len(), 1);
        let cell = results.cell("restarts, amnesia", "ours");
        assert_eq!(cell.map(|cell| cell.simulated.exclusion), Some(4));
        assert_eq!(results.cell("flush", "ours"), None);
    }
}
