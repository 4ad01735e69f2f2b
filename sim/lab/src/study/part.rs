//! Parts of a campaign that ran on several machines, and their sum.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::simulation::run;
use crate::study::campaign::{AfterFailure, Campaign, Shard, Summary};
use crate::study::failure::FileError;
use quorlock_sim_plan::generator::PlanGenerator;

/// The result of one shard of a campaign, and what ran it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// What ran, and over which seeds.
    pub origin: Origin,
    /// The result.
    pub summary: Summary,
}

/// What ran a part of a campaign, and over which seeds. Parts add up only if they differ in nothing but the shard.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// The version of the simulator.
    pub version: String,
    /// The commit that it was built from, if the environment variable `QUORLOCK_COMMIT` had it during the build.
    pub commit: Option<String>,
    /// A hash of the plans of some seeds: builds that draw plans by other rules have another one.
    pub generator: String,
    /// A hash of the traces of these seeds: builds that behave differently have another one, even at one commit.
    pub behaviour: String,
    /// The flags that choose the plans.
    pub flags: String,
    /// The first seed of the campaign, and the one behind its last.
    pub seeds: (u64, u64),
    /// The index of the shard, from 0, and the number of shards.
    pub shard: (u64, u64),
}

/// Why parts are not the parts of one campaign.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// There is no part.
    #[error("there is nothing to merge")]
    Nothing,
    /// The text is not what `explore --json` prints.
    #[error("not the output of `explore --json`: {reason}")]
    NoPart {
        /// What is wrong.
        reason: String,
    },
    /// Two parts are not of one campaign.
    #[error(
        "shard {shard} is of another campaign: its {what} is {other}, and that of shard {first} is {one}"
    )]
    Differs {
        /// The shard that differs.
        shard: String,
        /// The shard that was read first.
        first: String,
        /// What differs.
        what: &'static str,
        /// The value of the first.
        one: String,
        /// The value of the other.
        other: String,
    },
    /// A shard was given twice.
    #[error("shard {shard} is given twice")]
    Twice {
        /// The shard.
        shard: String,
    },
    /// Some shards were not given.
    #[error("the campaign is not complete: there is no shard {}", .shards.join(", "))]
    Missing {
        /// The shards.
        shards: Vec<String>,
    },
    /// A shard has not run all of its seeds, and no failure ended it.
    #[error("shard {shard} has {runs} runs, and its seeds are {of}")]
    Incomplete {
        /// The shard.
        shard: String,
        /// The number of its runs.
        runs: u64,
        /// The number of its seeds.
        of: u64,
    },
}

/// The number of seeds whose plans and traces tell builds apart.
const PROBES: u64 = 4;

impl Origin {
    /// Returns the origin of a campaign. Runs a few of its first seeds.
    #[must_use]
    pub fn of(campaign: &Campaign) -> Self {
        let generator = &campaign.generator;
        let (mut plans, mut traces) = (Fnv::new(), Fnv::new());
        for seed in campaign.seeds.clone().take(PROBES as usize) {
            let plan = Rc::new(generator.plan(seed));
            let text = serde_json::to_string(&*plan).expect("BUG: a plan is JSON");
            plans.add(text.as_bytes());
            traces.add(&run(&plan).trace.to_le_bytes());
        }
        Origin {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: option_env!("QUORLOCK_COMMIT").map(str::to_owned),
            generator: plans.text(),
            behaviour: traces.text(),
            flags: flags(generator, campaign.after_failure),
            seeds: (campaign.seeds.start, campaign.seeds.end),
            shard: (campaign.shard.index, campaign.shard.of),
        }
    }

    /// Returns what must be the same in all parts, with names for people.
    fn common(&self) -> [(&'static str, String); 7] {
        [
            ("version", self.version.clone()),
            (
                "commit",
                self.commit.clone().unwrap_or("unknown".to_owned()),
            ),
            ("flags", self.flags.clone()),
            ("range", format!("{}..{}", self.seeds.0, self.seeds.1)),
            ("number of shards", self.shard.1.to_string()),
            // These follow from the flags and the range, unless the builds differ.
            ("generator", self.generator.clone()),
            ("behaviour", self.behaviour.clone()),
        ]
    }

    fn named(&self) -> String {
        named(self.shard.0, self.shard.1)
    }

    /// Returns the number of seeds of the shard.
    fn len(&self) -> u64 {
        let shard = Shard {
            index: self.shard.0,
            of: self.shard.1,
        };
        shard.len(&(self.seeds.0..self.seeds.1))
    }
}

fn named(index: u64, of: u64) -> String {
    format!("{index}/{of}")
}

/// Returns the flags of `explore` that choose the plans and the end of the campaign.
fn flags(generator: &PlanGenerator, after_failure: AfterFailure) -> String {
    let PlanGenerator {
        faults,
        lane,
        deployment,
        lock,
        variant,
        nodes,
        clients,
        workload,
        duration,
    } = generator;
    let mut flags = format!(
        "--lock {lock:?} --deployment {deployment:?} --lane {lane:?} --variant {variant} --faults {faults}"
    );
    let optional = [
        ("nodes", nodes.map(|nodes| nodes.to_string())),
        ("clients", clients.map(|clients| clients.to_string())),
        ("workload", workload.map(|work| work.name().to_owned())),
        ("duration", duration.map(|duration| duration.to_string())),
    ];
    for (flag, value) in optional {
        flags.extend(value.map(|value| format!(" --{flag} {value}")));
    }
    if after_failure == AfterFailure::GoOn {
        flags.push_str(" --keep-going");
    }
    flags.to_lowercase()
}

impl Part {
    /// Runs the campaign, and states what ran it.
    ///
    /// # Errors
    /// Returns [`FileError`] if a failure cannot be written.
    pub fn run(campaign: &Campaign) -> Result<Part, FileError> {
        let summary = campaign.run()?;
        let origin = Origin::of(campaign);
        Ok(Part { origin, summary })
    }

    /// Reads what [`Part::text`] returned.
    ///
    /// # Errors
    /// [`MergeError::NoPart`] if it is anything else, such as the output of a version without origins.
    pub fn read(text: &str) -> Result<Self, MergeError> {
        let wrong = |reason: String| MergeError::NoPart { reason };
        let json = |error: serde_json::Error| wrong(error.to_string());
        let mut fields: Map<String, Value> = serde_json::from_str(text).map_err(json)?;
        let origin = fields.remove("origin");
        let origin =
            origin.ok_or_else(|| wrong("it does not say what ran it (`origin`)".into()))?;
        let part = Part {
            origin: serde_json::from_value(origin).map_err(json)?,
            summary: serde_json::from_value(Value::Object(fields)).map_err(json)?,
        };
        match part.origin.shard {
            (index, of) if index < of => Ok(part),
            (index, of) => Err(wrong(format!("{index}/{of} is not a shard"))),
        }
    }

    /// Returns the part as one line of JSON: the fields of the summary, and `origin`.
    #[must_use]
    pub fn text(&self) -> String {
        #[derive(Serialize)]
        struct Written<'a> {
            origin: &'a Origin,
            #[serde(flatten)]
            summary: &'a Summary,
        }
        let written = Written {
            origin: &self.origin,
            summary: &self.summary,
        };
        serde_json::to_string(&written).expect("BUG: a part is JSON")
    }

    /// Adds up all parts of one campaign. The result is the part that one machine would have had.
    ///
    /// # Errors
    /// [`MergeError`] if they are not all of one campaign, if one is missing, given twice or cut short: the sum would
    /// state more or fewer runs than there were.
    pub fn merge(parts: Vec<Part>) -> Result<Part, MergeError> {
        let Some(first) = parts.first().map(|part| part.origin.clone()) else {
            return Err(MergeError::Nothing);
        };
        let mut by_index = BTreeMap::new();
        for part in parts {
            let origin = &part.origin;
            let pairs = first.common().into_iter().zip(origin.common());
            if let Some(((what, one), (_, other))) = { pairs }.find(|(one, other)| one != other) {
                return Err(MergeError::Differs {
                    shard: origin.named(),
                    first: first.named(),
                    what,
                    one,
                    other,
                });
            }
            let (shard, runs, of) = (origin.named(), part.summary.runs, origin.len());
            let was_ended = !part.summary.violated.is_empty() && runs < of;
            if runs != of && !was_ended {
                return Err(MergeError::Incomplete { shard, runs, of });
            }
            if by_index.insert(origin.shard.0, part).is_some() {
                return Err(MergeError::Twice { shard });
            }
        }
        let of = first.shard.1;
        let missing = (0..of).filter(|index| !by_index.contains_key(index));
        let shards: Vec<String> = missing.map(|index| named(index, of)).collect();
        if !shards.is_empty() {
            return Err(MergeError::Missing { shards });
        }
        let mut summary = Summary::default();
        for part in by_index.into_values() {
            summary.merge(part.summary);
        }
        summary.files.sort();
        let shard = (0, 1);
        let origin = Origin { shard, ..first };
        Ok(Part { origin, summary })
    }
}

/// The hash FNV-1a, which is the same on every machine.
struct Fnv(u64);

impl Fnv {
    fn new() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn text(&self) -> String {
        format!("{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests;
