//! Scenarios: plans with their expected verdicts, and the reasons for them.
//!
//! A plan in a file is a scenario without a header. A scenario has cases: the same plan with other locks or in other
//! circumstances, each with its own verdict. A case fails if an expected break is not found, if an unexpected break is
//! found, or if too little happened to show anything.

mod catalog;
mod figure;
mod file;
mod judge;

use serde::{Deserialize, Serialize};

use quorlock_sim_plan::Plan;
use quorlock_sim_plan::property::Property;

pub use catalog::{built_in, find};
pub use figure::Figure;
pub use file::{ScenarioError, parse, read};
pub use judge::{CaseVerdict, Depth, Judged, Judging};

/// A plan with its expected verdicts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scenario {
    /// The identifier of the scenario.
    pub id: String,
    /// A title of a few words.
    pub title: String,
    /// A description of what happens, and the reason for the verdict.
    pub reason: String,
    /// The source of the claim.
    pub source: String,
    /// The cases: variations of the plan, each with its expected verdict.
    pub cases: Vec<Case>,
}

/// One variation of a scenario's plan, with its expected verdict.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The name of the case, which states how it differs from the others.
    pub name: String,
    /// The expected verdict.
    pub expect: Expect,
    /// The reason for the verdict, if the reason of the scenario does not state it.
    pub reason: String,
    /// The reason why only the fast lane can show the case, if that is so.
    pub fast_only: Option<String>,
    /// The number of seeds. The first seed is 0.
    pub seeds: u64,
    /// The minimum of what must happen. If less happens, the case shows nothing.
    pub min: Least,
    /// A measurement that is compared with a published number.
    pub figure: Option<Figure>,
    /// The plan of the case.
    pub plan: Plan,
}

/// The expected verdict of a case.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expect {
    /// Every property holds in every run.
    Holds,
    /// The first property is broken in at least one run, and no other properties are broken except the listed ones.
    Breaks(Property, Vec<Property>),
}

/// The minimum of what must happen in all runs of a case together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Least {
    /// The number of holds that were won.
    pub grants: u64,
    /// The number of acquires that were refused because of another owner's claim.
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
