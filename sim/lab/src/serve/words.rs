//! Faults on the command line: the fields of a fault in a plan, separated by commas.

use std::str::FromStr;

use quorlock_sim_plan::fault::{Fault, FaultKind, Kind};
use quorlock_sim_plan::time::SimTime;
use quorlock_sim_plan::{Nodes, Plan};
use toml::{Table, Value};

const EXAMPLE: &str = "kind = 'pause-node', at = '5s', lasts = '3s', node = 0";

/// The longest time after the start at which a fault may end.
const LONGEST: SimTime = SimTime::secs(24 * 3600);

/// A fault as written on the command line. Without a node, it strikes every node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FaultWords {
    fault: Fault,
    strikes_all: bool,
}

impl FaultWords {
    /// Returns the fault, once for each node if it strikes every node.
    ///
    /// # Errors
    /// Returns a description of the error if the fault is impossible for this number of nodes.
    pub fn of(&self, nodes: u16) -> Result<Vec<Fault>, String> {
        let struck = if self.strikes_all { 0..nodes } else { 0..1 };
        let faults = struck.map(|each| {
            let mut fault = self.fault.clone();
            // The clients are not known: a fault of links without clients is one of all connections.
            fault.strike_all(0, nodes);
            if let FaultKind::Node { node, .. } = &mut fault.what
                && self.strikes_all
            {
                *node = each;
            }
            fault
        });
        let plan = Plan {
            duration: LONGEST,
            nodes: Nodes {
                count: nodes,
                ..Nodes::default()
            },
            faults: faults.collect(),
            ..Plan::default()
        };
        quorlock_sim_plan::check(&plan).map_err(|error| error.to_string())?;
        Ok(plan.faults)
    }
}

impl FromStr for FaultWords {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("{text:?}: {why}; write for example {EXAMPLE}");
        let document = format!("fault = {{ {text} }}").parse::<Table>();
        let mut document = document.map_err(|error| wrong(error.message()))?;
        let Some(Value::Table(mut fields)) = document.remove("fault") else {
            return Err(wrong("these are no fields"));
        };
        let kind = fields.get("kind").and_then(Value::as_str);
        let kind = kind.and_then(Kind::named);
        if let Some((kind, why)) = kind.and_then(|kind| Some((kind, kind.lacks_served()?))) {
            return Err(wrong(&format!("serve has no {}: {why}", kind.name())));
        }
        let strikes_all = kind.is_some_and(Kind::is_of_node) && !fields.contains_key("node");
        if strikes_all {
            fields.insert("node".to_owned(), Value::Integer(0));
        }
        let fault: Result<Fault, _> = Value::Table(fields).try_into();
        let fault = fault.map_err(|error| wrong(error.message()))?;
        if !fault.is_fixed() {
            return Err(wrong(
                "messages are not read here: set only at, or at and every",
            ));
        }
        Ok(FaultWords { fault, strikes_all })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str, nodes: u16) -> Vec<String> {
        let faults = text.parse::<FaultWords>().unwrap().of(nodes).unwrap();
        let told = faults
            .iter()
            .map(|fault| format!("{}: {fault}", fault.when));
        told.collect()
    }

    #[test]
    fn fields_stand_for_the_faults_of_plans() {
        assert_eq!(
            told("kind = 'pause-node', at = '5s', lasts = '3s'", 1),
            ["5s: node 0 pauses for 3s"]
        );
        assert_eq!(
            told(
                "kind = 'crash-node', at = '10s', restart_after = '0s', node = 1",
                3
            ),
            ["10s: node 1 crashes and is started again after 0s"]
        );
        assert_eq!(
            told("kind = 'node-step', at = '1.5s', by = '-30s'", 2),
            [
                "1.5s: the clock of node 0 is set by -30s",
                "1.5s: the clock of node 1 is set by -30s"
            ]
        );
        assert_eq!(
            told("kind = 'backup', at = '3s'", 2),
            ["3s: backup of nodes 0, 1"]
        );
    }

    #[test]
    fn what_is_no_fault_is_refused_with_an_example() {
        for text in [
            "",
            "kind = 'pause-node'",
            "kind = 'pause-node', at = '5s'",
            "kind = 'flush', at = '1s', lasts = '2s'",
            "kind = 'flush', at = '1s', node = 'x'",
            "kind = 'server-error', at = '1s', lasts = '1s', error = 'EIO'",
            "kind = 'loss', at = '1s', lasts = '1s', of_million = 1",
            "kind = 'flush', after = { message = 'renew' }",
            "kind = 'earthquake', at = '1s'",
            "1 } #",
        ] {
            let refused = text.parse::<FaultWords>().unwrap_err();
            assert!(refused.contains(EXAMPLE), "{refused}");
        }
        for text in [
            "kind = 'flush', at = '1s', node = 3",
            "kind = 'node-rate', at = '1s', rate_ppm = -1_000_000",
        ] {
            assert!(text.parse::<FaultWords>().unwrap().of(3).is_err(), "{text}");
        }
    }
}
