//! The targets ("bars") for Quorlock's figures, compared with those of other libraries.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::peer::Peer;
use crate::work::Figures;

/// The figures of each work and library.
pub(crate) type Results = BTreeMap<&'static str, BTreeMap<Peer, Figures>>;

/// One figure, and the bound that it must meet.
pub(crate) struct Bar {
    pub(crate) work: &'static str,
    pub(crate) figure: &'static str,
    beside: Beside,
    bound: Bound,
}

/// The figure that a bar is compared with.
#[derive(Clone, Copy)]
enum Beside {
    Nothing,
    Peer(Peer),
}

#[derive(Clone, Copy)]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

const fn bar(work: &'static str, figure: &'static str, beside: Beside, bound: Bound) -> Bar {
    Bar {
        work,
        figure,
        beside,
        bound,
    }
}

use Beside::Nothing;
use Bound::{AtLeast, AtMost};

const RSLOCK: Beside = Beside::Peer(Peer::Rslock);
const BARE: Beside = Beside::Peer(Peer::Bare);

pub(crate) const ALL: [Bar; 21] = [
    bar("callers-1", "pairs a second", RSLOCK, AtLeast(1.2)),
    bar("callers-5", "pairs a second", RSLOCK, AtLeast(1.2)),
    bar("callers-1", "servers, us a pair", RSLOCK, AtMost(1.0)),
    bar("callers-5", "servers, us a pair", RSLOCK, AtMost(1.0)),
    bar("acquire-1", "median, us", BARE, AtMost(1.05)),
    bar("acquire-5", "median, us", RSLOCK, AtMost(1.25)),
    bar("acquire-5-1ms", "median, us", RSLOCK, AtMost(1.03)),
    bar("keep-1", "servers, % of a core", Nothing, AtMost(0.5)),
    bar("two-1", "in use", Nothing, AtLeast(0.9)),
    bar("two-5", "in use", Nothing, AtLeast(0.9)),
    bar("two-1", "idle p99, ms", Nothing, AtMost(20.0)),
    bar("two-5", "idle p99, ms", Nothing, AtMost(20.0)),
    bar("ten-1", "idle p99, ms", Nothing, AtMost(20.0)),
    bar("ten-5", "idle p99, ms", Nothing, AtMost(20.0)),
    bar("two-1", "least share / even", Nothing, AtLeast(1.0 / 3.0)),
    bar("two-5", "least share / even", Nothing, AtLeast(1.0 / 3.0)),
    bar("ten-1", "least share / even", Nothing, AtLeast(1.0 / 3.0)),
    bar("ten-5", "least share / even", Nothing, AtLeast(1.0 / 3.0)),
    bar("two-1", "commands a hold", Nothing, AtMost(4.0)),
    bar("two-5", "commands a hold", Nothing, AtMost(20.0)),
    bar("waiters-5", "commands a hold", Nothing, AtMost(12.0)),
];

/// The outcome of a bar.
pub(crate) struct Outcome {
    pub(crate) bar: String,
    pub(crate) value: f64,
    pub(crate) bound: f64,
    /// The same figure of Quorlock's second runs, divided by that of the first: the noise of the machine.
    pub(crate) control: f64,
    pub(crate) is_met: bool,
}

impl Bar {
    /// Returns the outcome; `None` if it was not measured.
    pub(crate) fn outcome(&self, results: &Results) -> Option<Outcome> {
        let peers = results.get(self.work)?;
        let figure = |peer| peers.get(&peer)?.get(self.figure).copied();
        let ours = figure(Peer::Quorlock)?;
        let (value, beside) = match self.beside {
            Nothing => (ours, String::new()),
            Beside::Peer(peer) => (ours / figure(peer)?, format!(" / {peer}")),
        };
        let control = figure(Peer::Control)? / ours;
        // The difference between two runs of the same program is noise.
        let noise = control.max(1.0 / control).max(1.0);
        let (bound, is_met) = match self.bound {
            AtLeast(bound) => (bound, bound / noise <= value),
            AtMost(bound) => (bound, value <= bound * noise),
        };
        Some(Outcome {
            bar: format!("{}: {}{beside}", self.work, self.figure),
            value,
            bound,
            control,
            is_met,
        })
    }
}

impl Outcome {
    pub(crate) fn json(&self) -> Value {
        json!({
            "bar": self.bar,
            "value": self.value,
            "bound": self.bound,
            "control": self.control,
            "met": self.is_met,
        })
    }
}
