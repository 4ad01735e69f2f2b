//! The targets ("bars") for Quorlock's figures, alone or beside those of another contestant.

use crate::case;
use crate::contestant::Contestant::{self, Bare, Control, Plain, Quorlock, Reader, ReaderAgain};
use crate::contestant::Contestant::{Fair, Permits, ReaderOfMany, Rows, Rslock, TenLocks};
use crate::results::Results;

/// A figure, and the bound that it must meet.
pub(crate) struct Bar {
    case: &'static str,
    figure: &'static str,
    bound: Bound,
    /// What the figure is divided by.
    beside: Option<Beside>,
}

/// The same figure of a contestant, or in another case.
#[derive(Clone, Copy)]
enum Beside {
    Contestant(Contestant),
    Case(&'static str),
}

#[derive(Clone, Copy)]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

use Beside::{Case, Contestant as Of};
use Bound::{AtLeast, AtMost};

const fn bar(
    case: &'static str,
    figure: &'static str,
    beside: Option<Beside>,
    bound: Bound,
) -> Bar {
    Bar {
        case,
        figure,
        bound,
        beside,
    }
}

const BARE: Option<Beside> = Some(Of(Bare));
const RSLOCK: Option<Beside> = Some(Of(Rslock));
const OFF: Option<Beside> = Some(Of(Plain));

#[rustfmt::skip]
pub(crate) const ALL: &[Bar] = &[
    bar("callers-1", "pairs a second", RSLOCK, AtLeast(1.15)),
    bar("callers-5", "pairs a second", RSLOCK, AtLeast(1.15)),
    bar("callers-1", "pairs a second", BARE, AtLeast(0.8)),
    bar("callers-5", "pairs a second", BARE, AtLeast(0.9)),
    bar("callers-1", "servers, us a pair", RSLOCK, AtMost(0.85)),
    bar("callers-5", "servers, us a pair", RSLOCK, AtMost(0.95)),
    bar("acquire-1", "acquire, us", BARE, AtMost(1.05)),
    bar("acquire-1", "release, us", BARE, AtMost(1.1)),
    bar("acquire-1", "acquire, us", RSLOCK, AtMost(1.1)),
    bar("acquire-5", "acquire, us", BARE, AtMost(1.0)),
    bar("acquire-5", "release, us", BARE, AtMost(1.0)),
    bar("acquire-5", "acquire, us", OFF, AtMost(1.1)),
    bar("acquire-5", "acquire, us", RSLOCK, AtMost(1.25)),
    bar("acquire-5-0.5ms", "acquire, us", OFF, AtMost(1.1)),
    bar("acquire-5-1ms", "acquire, us", OFF, AtMost(1.1)),
    bar("acquire-5-1ms", "acquire, us", RSLOCK, AtMost(1.03)),
    bar("keep-1", "servers, % of a core", None, AtMost(0.5)),
    bar("keep-1", "client, % of a core", None, AtMost(2.0)),
    bar("keep-1", "resident bytes a lock", None, AtMost(2048.0)),
    bar("keep-1", "lost", None, AtMost(0.0)),
    bar("handover-1", "in use", None, AtLeast(0.9)),
    bar("handover-5", "in use", None, AtLeast(0.9)),
    bar("two-1", "in use", None, AtLeast(0.9)),
    bar("two-5", "in use", None, AtLeast(0.9)),
    bar("two-1", "idle p99, ms", None, AtMost(20.0)),
    bar("two-5", "idle p99, ms", None, AtMost(20.0)),
    bar("ten-1", "idle p99, ms", None, AtMost(20.0)),
    bar("ten-5", "idle p99, ms", None, AtMost(20.0)),
    bar("two-1", "least share / even", None, AtLeast(1.0 / 3.0)),
    bar("two-5", "least share / even", None, AtLeast(1.0 / 3.0)),
    bar("ten-1", "least share / even", None, AtLeast(1.0 / 3.0)),
    bar("ten-5", "least share / even", None, AtLeast(1.0 / 3.0)),
    bar("two-1", "commands a hold", None, AtMost(4.0)),
    bar("two-5", "commands a hold", None, AtMost(20.0)),
    bar("waiters-1", "commands a hold", None, AtMost(2.0)),
    bar("waiters-5", "commands a hold", None, AtMost(4.0)),
    bar("permits-1", "holds a second", Some(Of(TenLocks)), AtLeast(0.8)),
    bar("permits-5", "holds a second", Some(Of(TenLocks)), AtLeast(0.8)),
    bar("fair-50", "requests a hold", Some(Case("fair-2")), AtMost(1.1)),
    bar("table-64", "pairs a second", Some(Of(Rows)), AtLeast(0.8)),
    bar("table-50", "requests a hold", None, AtMost(3.0)),
    bar("readers-1", "acquire, us", Some(Of(Reader)), AtMost(2.0)),
];

/// The outcome of a bar.
pub(crate) struct Outcome {
    pub(crate) bar: String,
    pub(crate) value: f64,
    pub(crate) bound: f64,
    /// The same figure of an identical contestant, divided by that of the first one: the noise of the machine.
    pub(crate) control: Option<f64>,
    pub(crate) is_met: bool,
}

impl Bar {
    /// Returns the outcome; `None` if it was not measured.
    pub(crate) fn outcome(&self, results: &Results) -> Option<Outcome> {
        let figure = |case, contestant| results.median(case, contestant, self.figure);
        // The contestant that must meet the bar, and two that are identical.
        let (ours, first, again) = match self.case {
            "readers-1" => (ReaderOfMany, Reader, ReaderAgain),
            "fair-50" => (Fair, Fair, Fair),
            "permits-1" | "permits-5" => (Permits, Permits, Permits),
            _ => (Quorlock, Quorlock, Control),
        };
        let own = figure(self.case, ours)?;
        let (value, beside) = match self.beside {
            None => (own, String::new()),
            Some(Of(other)) => (
                own / figure(self.case, other)?,
                format!(" / {}", other.name()),
            ),
            Some(Case(other)) => (own / figure(other, ours)?, format!(" / {other}")),
        };
        let pair = figure(self.case, first).zip(figure(self.case, again));
        let control = pair.filter(|_| first != again).map(|(one, two)| two / one);
        // Two zeros do not differ.
        let control = control.filter(|ratio| ratio.is_normal());
        // The difference between two runs of the same program is noise.
        let noise = control.map_or(1.0, |ratio| ratio.max(1.0 / ratio));
        let (bound, is_met) = match self.bound {
            AtLeast(bound) => (bound, bound / noise <= value),
            AtMost(bound) => (bound, value <= bound * noise),
        };
        Some(Outcome {
            bar: format!("{}: {}{beside}", self.case, self.figure),
            value,
            bound,
            control,
            is_met,
        })
    }
}

/// Checks that each bar belongs to a case with its contestants.
pub(crate) fn check() {
    for bar in ALL {
        let case = case::ALL.iter().find(|case| case.name == bar.case);
        let case = case.expect("BUG: a bar of no case");
        if let Some(Of(other)) = bar.beside {
            let takes_part = case.contestants.contains(&other);
            assert!(takes_part, "BUG: {other:?} takes no part in {}", bar.case);
        }
    }
}
