//! Assertions in the code under test: properties, and marks on the time line.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Once;
use std::task::{Context as TaskContext, Poll};

use quorlock_sim_world::engine::clients::endless::GivenUp;
use quorlock_sim_world::history::own::{Breach, Mark, Modality, StatedProperty};
use quorlock_sim_world::world::id::ProcessId;
use quorlock_sim_world::world::{World, with};

/// The name of the property that is broken when a client panics.
pub const NO_PANIC: &str = "no client panics";

/// The location of a property in the source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SourcePlace {
    /// The file, as the compiler names it.
    pub file: &'static str,
    /// The line, from 1.
    pub line: u32,
}

thread_local! {
    /// Whether this thread is running a property test.
    static IS_TESTED: Cell<bool> = const { Cell::new(false) };
    /// The client that is being polled.
    static POLLED: Cell<Option<ProcessId>> = const { Cell::new(None) };
    /// The message of the last panic of a client.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Records a check of a property. The macros `always!`, `sometimes!` and `eventually!` call it.
///
/// # Panics
/// Outside of a property test, panics if a property of `always!` is false.
#[doc(hidden)]
pub fn look(
    modality: Modality,
    name: &'static str,
    is_true: bool,
    place: SourcePlace,
    saw: impl FnOnce() -> String,
) {
    if !IS_TESTED.get() {
        assert!(is_true || modality != Modality::Always, "{name}: {}", saw());
        return;
    }
    let story = (!is_true).then(|| {
        let saw = saw();
        let SourcePlace { file, line } = place;
        match saw.as_str() {
            "" => format!("it was false in {file}:{line}"),
            saw => format!("{saw}, in {file}:{line}"),
        }
    });
    with(|world| note(world, modality, name, story));
}

/// Records the result of a check. `story` describes the state in which the property was false; it is `None` if the
/// property was true.
fn note(world: &mut World, modality: Modality, name: &str, story: Option<String>) {
    let (at, process) = moment(world);
    let known = &mut world.history.stated;
    let is_it = |stated: &StatedProperty| stated.modality == modality && stated.name == name;
    let place = known.iter().position(is_it).unwrap_or_else(|| {
        known.push(StatedProperty {
            modality,
            name: name.to_owned(),
            begun: at,
            checks: 0,
            holds: 0,
            broken: None,
        });
        known.len() - 1
    });
    let Some(stated) = known.get_mut(place) else {
        return;
    };
    stated.checks += 1;
    match story {
        None => stated.holds += 1,
        Some(story) => {
            stated.broken.get_or_insert(Breach { at, process, story });
        }
    }
}

/// Puts a mark on the time line of the client that is being polled. The macro `mark!` calls it.
#[doc(hidden)]
pub fn mark(text: String) {
    if IS_TESTED.get() {
        with(|world| {
            let (at, process) = moment(world);
            world.history.marks.push(Mark { at, process, text });
        });
    }
}

/// Returns the true time of the client that is being polled, and its process.
fn moment(world: &World) -> (u64, Option<quorlock_sim_world::history::Process>) {
    let polled = POLLED.get().filter(|who| who.run == world.run());
    let at = polled.map_or(world.now(), |who| world.moment(who));
    (at, polled.map(ProcessId::process))
}

/// Runs code that belongs to no client, although a client may be on its stack.
pub(crate) fn unattended<R>(job: impl FnOnce() -> R) -> R {
    let before = POLLED.replace(None);
    let done = job();
    POLLED.set(before);
    done
}

/// Runs a property test: properties are recorded, and a panic of a client breaks [`NO_PANIC`].
pub(crate) fn tested<R>(run: impl FnOnce() -> R) -> R {
    struct Ends(bool);
    impl Drop for Ends {
        fn drop(&mut self) {
            IS_TESTED.set(self.0);
        }
    }
    listen_to_panics();
    let _ends = Ends(IS_TESTED.replace(true));
    run()
}

/// The work of a client in a property test. Its checks and panics are attributed to the client.
pub(crate) struct Attended {
    who: ProcessId,
    work: Pin<Box<dyn Future<Output = ()>>>,
}

impl Attended {
    pub(crate) fn new(who: ProcessId, work: impl Future<Output = ()> + 'static) -> Self {
        Attended {
            who,
            work: Box::pin(work),
        }
    }
}

impl Future for Attended {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<()> {
        // The client may be polled on the stack of another client, which is stopped in the middle of a step. The
        // previous value is restored below.
        let before = POLLED.replace(Some(self.who));
        let polled = catch_unwind(AssertUnwindSafe(|| self.work.as_mut().poll(cx)));
        let polled = polled.or_else(|payload| {
            if payload.is::<GivenUp>() {
                return Err(payload);
            }
            let story = PANIC.take().unwrap_or_else(|| "it panicked".to_owned());
            with(|world| note(world, Modality::Always, NO_PANIC, Some(story)));
            Ok(Poll::Ready(()))
        });
        POLLED.set(before);
        polled.unwrap_or_else(|payload| resume_unwind(payload))
    }
}

/// Installs a panic hook that puts a client's panic message into the history and prints nothing. Shrinking runs a
/// failure hundreds of times, and the messages would fill the screen.
fn listen_to_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
            let is_of_client = POLLED.try_with(Cell::get).is_ok_and(|who| who.is_some());
            if !is_of_client {
                return before(info);
            }
            let payload = info.payload();
            let said = payload.downcast_ref::<&str>().copied();
            let said = said.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
            let said = said.unwrap_or("it panicked");
            let place = info.location();
            let place = place.map_or(String::new(), |at| {
                format!(", in {}:{}", at.file(), at.line())
            });
            let remedy = remedy(said);
            PANIC.set(Some(format!("{said}{remedy}{place}")));
        }));
    });
}

/// Returns what to do about a panic with this message, if that is known.
fn remedy(said: &str) -> &'static str {
    if said.contains("Tokio 1.x") {
        ": timers, tasks and sockets of tokio do not run in this simulation; use `ctx.sleep(..)` and `ctx.now()`, or run the code as it \
         is in a turmoil simulation (the guide \"Quorlock in your turmoil test\", docs/src/how-to/turmoil.md)"
    } else {
        ""
    }
}

/// Checks a property that must always be true: `always!(condition, "its name")`. If it is false, the run fails.
///
/// Further arguments are those of [`format!`] and describe the state. They are evaluated only if the condition is
/// false. A property that no run checks fails the test, see [`PropertyTest`](crate::property_test::PropertyTest).
///
/// ```
/// # let stock = 3;
/// quorlock_sim::always!(0 <= stock, "no piece is sold twice", "the stock is {stock}");
/// ```
#[macro_export]
macro_rules! always {
    ($condition:expr, $name:literal $(, $($saw:tt)*)?) => {
        $crate::__look!(Always, $condition, $name $(, $($saw)*)?)
    };
}

/// Checks a property that must be true at least once in all the runs of a test: `sometimes!(condition, "its name")`.
///
/// It shows that the test reaches the cases it was written for, for example that a client waits or that a write is
/// refused.
///
/// ```
/// # let attempts = 2;
/// quorlock_sim::sometimes!(1 < attempts, "a client tries again");
/// ```
#[macro_export]
macro_rules! sometimes {
    ($condition:expr, $name:literal $(, $($saw:tt)*)?) => {
        $crate::__look!(Sometimes, $condition, $name $(, $($saw)*)?)
    };
}

/// Checks a property that must be true at least once in each run that checks it: `eventually!(condition, "its name")`.
///
/// The property is demanded from the first check on. After the last fault, a run lasts long enough for clients to
/// acquire their locks.
///
/// ```
/// # let delivered = 3;
/// quorlock_sim::eventually!(delivered == 3, "every order is delivered", "{delivered} so far");
/// ```
#[macro_export]
macro_rules! eventually {
    ($condition:expr, $name:literal $(, $($saw:tt)*)?) => {
        $crate::__look!(Eventually, $condition, $name $(, $($saw)*)?)
    };
}

/// Puts a mark on the time line of the current client: `mark!("pays {amount}")`. The page of a failure shows it.
#[macro_export]
macro_rules! mark {
    ($($text:tt)+) => {
        $crate::assertion::mark(::std::format!($($text)+))
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __look {
    ($modality:ident, $condition:expr, $name:literal $(,)?) => {
        $crate::__look!($modality, $condition, $name, "")
    };
    ($modality:ident, $condition:expr, $name:literal, $($saw:tt)+) => {
        $crate::assertion::look(
            $crate::history::own::Modality::$modality,
            $name,
            $condition,
            $crate::assertion::SourcePlace {
                file: ::core::file!(),
                line: ::core::line!(),
            },
            || ::std::format!($($saw)+),
        )
    };
}
