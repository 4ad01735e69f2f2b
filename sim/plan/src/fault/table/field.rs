//! The fields of faults, for what treats all faults alike: checks of plans, and smaller plans.

use super::text::Field;
use crate::fault::detail::{Handover, InFlight, ServerError, Suspended};
use crate::fault::{Fault, FaultKind};
use crate::time::{ClockStep, SimTime};

/// The value of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value<'a> {
    /// A length of time.
    Span(SimTime),
    /// A step of a clock.
    Step(ClockStep),
    /// An ordinal or a share.
    Count(u32),
    /// The rate of a clock.
    Rate(i32),
    /// Indices from 0. [`Field::meaning`] tells of what.
    Numbers(&'a [u16]),
    /// One of several words.
    Choice,
}

/// A mutable reference to the value of a field.
#[derive(Debug)]
pub enum ValueMut<'a> {
    /// A length of time.
    Span(&'a mut SimTime),
    /// A step of a clock.
    Step(&'a mut ClockStep),
    /// An ordinal or a share.
    Count(&'a mut u32),
    /// The rate of a clock.
    Rate(&'a mut i32),
    /// One index from 0.
    Number(&'a mut u16),
    /// Several indices from 0.
    Numbers(&'a mut Vec<u16>),
    /// One of several words, or no index.
    Choice,
}

/// What the value of a field stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Meaning {
    /// Indices of clients.
    Clients,
    /// Indices of nodes.
    Nodes,
    /// The index of a replica of the node.
    Replicas,
    /// Indices of sentinels of the group.
    Sentinels,
    /// The index of a name.
    Names,
    /// A number that counts from 1.
    Ordinal,
    /// Parts of a million.
    Share,
    /// The rate of a clock, in parts of a million.
    Rate,
    /// A value without bounds of its own.
    Anything,
}

impl Field {
    /// Returns what the value of the field stands for. The name of a field has one meaning in all faults.
    #[must_use]
    pub const fn meaning(self) -> Meaning {
        match self {
            Field::client | Field::clients | Field::left_behind => Meaning::Clients,
            Field::node | Field::nodes | Field::to => Meaning::Nodes,
            Field::replica => Meaning::Replicas,
            Field::sentinel | Field::sentinels => Meaning::Sentinels,
            Field::name => Meaning::Names,
            Field::nth => Meaning::Ordinal,
            Field::of_million => Meaning::Share,
            Field::rate_ppm => Meaning::Rate,
            Field::at
            | Field::every
            | Field::times
            | Field::until
            | Field::after
            | Field::lasts
            | Field::restart_after
            | Field::rejoin_after
            | Field::direction
            | Field::min
            | Field::max
            | Field::in_flight
            | Field::clock
            | Field::by
            | Field::error
            | Field::loses
            | Field::gap
            | Field::how => Meaning::Anything,
        }
    }
}

/// A type of fields.
pub(super) trait FieldType {
    /// The value of a blank fault.
    const BLANK: Self;

    fn value(&self) -> Value<'_>;

    fn value_mut(&mut self) -> ValueMut<'_>;
}

macro_rules! field_types {
    ($($type:ty = $blank:expr, $as:pat => $value:expr, $value_mut:expr;)*) => {$(
        impl FieldType for $type {
            const BLANK: Self = $blank;

            fn value(&self) -> Value<'_> {
                let $as = self;
                $value
            }

            fn value_mut(&mut self) -> ValueMut<'_> {
                let $as = self;
                $value_mut
            }
        }
    )*};
}

field_types! {
    SimTime = SimTime::ZERO, span => Value::Span(*span), ValueMut::Span(span);
    ClockStep = ClockStep::nanos(0), step => Value::Step(*step), ValueMut::Step(step);
    u32 = 0, count => Value::Count(*count), ValueMut::Count(count);
    i32 = 0, rate => Value::Rate(*rate), ValueMut::Rate(rate);
    u16 = 0, number => Value::Numbers(std::slice::from_ref(number)), ValueMut::Number(number);
    Option<u16> = None, number => Value::Numbers(number.as_slice()), match number {
        Some(number) => ValueMut::Number(number),
        None => ValueMut::Choice,
    };
    Vec<u16> = Vec::new(), numbers => Value::Numbers(numbers), ValueMut::Numbers(numbers);
    InFlight = InFlight::Lost, _ => Value::Choice, ValueMut::Choice;
    Suspended = Suspended::Counts, _ => Value::Choice, ValueMut::Choice;
    ServerError = ServerError::ReadOnly, _ => Value::Choice, ValueMut::Choice;
    Handover = Handover::Manual, _ => Value::Choice, ValueMut::Choice;
}

impl Fault {
    /// Returns the fields of the fault beside its target and its times, in the order of the table.
    #[must_use]
    pub fn fields(&self) -> Vec<(Field, Value<'_>)> {
        match &self.what {
            FaultKind::Link { fault, .. } => fault.fields(),
            FaultKind::Client { fault, .. } => fault.fields(),
            FaultKind::Node { fault, .. } => fault.fields(),
            FaultKind::Nodes { fault, .. } => fault.fields(),
        }
    }
}

impl FaultKind {
    /// Returns the fields of the fault beside its target, in the order of the table.
    pub fn fields_mut(&mut self) -> Vec<(Field, ValueMut<'_>)> {
        match self {
            FaultKind::Link { fault, .. } => fault.fields_mut(),
            FaultKind::Client { fault, .. } => fault.fields_mut(),
            FaultKind::Node { fault, .. } => fault.fields_mut(),
            FaultKind::Nodes { fault, .. } => fault.fields_mut(),
        }
    }
}
