//! Scenarios: a plan with what is expected of it, and why.
//!
//! A plan in a file is a scenario without a header. A scenario has cases: the same plan with other locks or other
//! circumstances, each with its own verdict. A break that is expected and not found fails just as a break that is not
//! expected, and so does a case in which nothing happened.

mod catalog;
mod figure;
mod file;
mod judge;

use serde::{Deserialize, Serialize};

use crate::checker::Property;
use crate::plan::Plan;

pub use catalog::{built_in, find};
pub use figure::{Figure, Interval, Measure, Measured};
pub(crate) use file::has_header;
pub use file::{ScenarioError, parse, read};
pub use judge::{CaseVerdict, Depth, Judged};

/// A plan with what is expected of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scenario {
    /// By which it is called.
    pub id: String,
    /// What happens, in a few words.
    pub title: String,
    /// What happens and why it ends as it does.
    pub reason: String,
    /// Who says so.
    pub source: String,
    /// Variations of the plan, each with its verdict.
    pub cases: Vec<Case>,
}

/// One plan of a scenario, and what is expected of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Case {
    /// What is special about it.
    pub name: String,
    /// What it comes to.
    pub expect: Expect,
    /// Why, if the scenario's own reason does not say it.
    pub reason: String,
    /// Why it cannot be shown in any lane but the fast one, if that is so.
    pub fast_only: Option<String>,
    /// Seeds from 0 up to this are run.
    pub seeds: u64,
    /// What must have happened at least, or nothing is shown.
    pub least: Least,
    /// A number that is measured, and compared with a published one.
    pub figure: Option<Figure>,
    /// What is run.
    pub plan: Plan,
}

/// What a case is expected to come to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Expect {
    /// Every property, in every run.
    Holds,
    /// This property is broken in at least one run, and no others but these are.
    Breaks(Property, Vec<Property>),
}

/// How much must have happened in all runs of a case together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Least {
    /// Holds that were won.
    pub grants: u64,
    /// Acquires that found another owner's claim.
    pub refusals: u64,
}

impl Default for Least {
    fn default() -> Self {
        Least {
            grants: 2,
            refusals: 1,
        }
    }
}
