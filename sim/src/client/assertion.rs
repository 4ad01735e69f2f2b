//! What the code under test says of itself: properties, and marks on the time line.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Once;
use std::task::{Context as TaskContext, Poll};

use crate::engine::clients::endless::GivenUp;
use crate::history::own::{Breach, Mark, Modality, StatedProperty};
use crate::world::id::ProcessId;
use crate::world::{World, with};

/// The property that a client breaks that panics.
pub const NO_PANIC: &str = "no client panics";

/// Where a property stands in the source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SourcePlace {
    /// The file, as the compiler names it.
    pub file: &'static str,
    /// The line, from 1.
    pub line: u32,
}

thread_local! {
    /// Whether a run of a property test goes on in this thread.
    static IS_TESTED: Cell<bool> = const { Cell::new(false) };
    /// The client that is polled.
    static POLLED: Cell<Option<ProcessId>> = const { Cell::new(None) };
    /// What the last panic of a client said.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Notes a look at a property. The macros `always!`, `sometimes!` and `eventually!` call it.
///
/// # Panics
/// Where no property test is run and a property of `always!` is false: then it is an assertion.
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

/// Notes what became of a property; a story tells how it was false.
fn note(world: &mut World, modality: Modality, name: &str, story: Option<String>) {
    let (at, process) = moment(world);
    let known = &mut world.history.stated;
    let is_it = |stated: &StatedProperty| stated.modality == modality && stated.name == name;
    let place = known.iter().position(is_it).unwrap_or_else(|| {
        known.push(StatedProperty {
            modality,
            name: name.to_owned(),
            begun: at,
            looks: 0,
            holds: 0,
            broken: None,
        });
        known.len() - 1
    });
    let Some(stated) = known.get_mut(place) else {
        return;
    };
    stated.looks += 1;
    match story {
        None => stated.holds += 1,
        Some(story) => {
            stated.broken.get_or_insert(Breach { at, process, story });
        }
    }
}

/// Puts a mark on the time line of the client that is polled. The macro `mark!` calls it.
#[doc(hidden)]
pub fn mark(text: String) {
    if IS_TESTED.get() {
        with(|world| {
            let (at, process) = moment(world);
            world.history.marks.push(Mark { at, process, text });
        });
    }
}

/// When it is for the client that is polled, and which that is.
fn moment(world: &World) -> (u64, Option<crate::history::Process>) {
    let polled = POLLED.get().filter(|who| who.run == world.run());
    let at = polled.map_or(world.now(), |who| world.moment(who));
    (at, polled.map(ProcessId::process))
}

/// Does something that is no client's doing, on whose stack it may be.
pub(crate) fn unattended<R>(job: impl FnOnce() -> R) -> R {
    let before = POLLED.replace(None);
    let done = job();
    POLLED.set(before);
    done
}

/// Runs what is tested: meanwhile properties are noted, and a panic of a client is one more that is broken.
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

/// The work of a client in a property test.
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
        // Another client may be in the middle of a step, on whose stack this is.
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

/// What a client says when it panics goes into the history. A failure is run hundreds of times while it is shrunk, and
/// would fill the screen.
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
            PANIC.set(Some(format!("{said}{place}")));
        }));
    });
}

/// A property that must be true at each look, or the run fails: `always!(condition, "its name")`.
///
/// More arguments are those of [`format!`] and say what was seen; they are not evaluated while the condition is true. A
/// property that no run looks at fails the test, see [`PropertyTest`](crate::property_test::PropertyTest).
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

/// A property that must be true at one look at least, in one of all the runs of a test: `sometimes!(condition, "its name")`.
///
/// It shows that the test comes to what it is about: that a client does wait, that a write is refused.
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

/// A property that must be true at one look at least in each run that looks at it: `eventually!(condition, "its name")`.
///
/// It begins with the first look. A run goes on after its faults for long enough that clients can acquire their locks.
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

/// Puts a mark on the time line of the client that is at work: `mark!("pays {amount}")`. The page of a failure shows it.
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
