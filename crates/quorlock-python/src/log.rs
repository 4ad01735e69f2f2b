//! Events of the library, as records for Python's `logging`.

use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::IntoPyObjectExt as _;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Metadata, Subscriber};

use crate::port::PortState;

/// The level of Python's `logging` from which on events are recorded: 10 for debug, 30 for warnings.
#[derive(Clone, Debug)]
pub(crate) struct Level(Arc<AtomicU32>);

/// Python's `WARNING`.
const WARNING: u32 = 30;

/// The largest number of records that wait for the interpreter, which Python code may hold for minutes.
const MOST_RECORDS: usize = 10_000;

/// The key of records at a port.
const RECORD: u64 = 0;

impl Default for Level {
    fn default() -> Self {
        Level(Arc::new(AtomicU32::new(WARNING)))
    }
}

impl Level {
    pub(crate) fn set(&self, level: u32) {
        self.0.store(level, Ordering::Relaxed);
        // Callsites remember whether they are wanted.
        tracing::callsite::rebuild_interest_cache();
    }

    fn wants(&self, metadata: &Metadata<'_>) -> bool {
        // Hints ask whether an event would be recorded.
        !metadata.is_span() && self.0.load(Ordering::Relaxed) <= in_python(metadata.level())
    }
}

/// The levels of Python have no trace: 5 is below its debug.
fn in_python(level: &tracing::Level) -> u32 {
    match *level {
        tracing::Level::ERROR => 40,
        tracing::Level::WARN => WARNING,
        tracing::Level::INFO => 20,
        tracing::Level::DEBUG => 10,
        tracing::Level::TRACE => 5,
    }
}

/// Sends events to a port.
pub(crate) fn dispatch(records: Arc<PortState>, level: Level) -> Dispatch {
    Dispatch::new(Records { records, level })
}

struct Records {
    records: Arc<PortState>,
    level: Level,
}

impl Subscriber for Records {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.level.wants(metadata)
    }

    fn event(&self, event: &Event<'_>) {
        let mut text = Text::default();
        event.record(&mut text);
        let (level, text) = (in_python(event.metadata().level()), text.0);
        let finish = move |py: pyo3::Python<'_>| (level, text).into_py_any(py);
        self.records
            .push_below(MOST_RECORDS, RECORD, Box::new(finish));
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The message, and then each field as `name=value`.
#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string does not fail.
        let _ = match field.name() {
            "message" => {
                let fields = std::mem::take(&mut self.0);
                write!(self.0, "{value:?}{fields}")
            }
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}
