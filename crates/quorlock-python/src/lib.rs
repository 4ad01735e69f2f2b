//! The native part of the Python package `quorlock`: the locks of the Rust library, whose calls never hold the interpreter.
//!
//! One thread per process, of the engine, drives all clients and renews what they hold. **It never attaches to the interpreter.**
//! Python code may compute for ten seconds, and a C extension may hold the interpreter for as long: a lease of three seconds is not
//! lost. What Python asks for is a call; a thread waits for it detached, and an event loop is woken through the descriptor of its
//! port. Everything else (threads, asyncio, context managers, docstrings) is Python, in the folder `python`.

// What Python sees.
mod client;
mod embedded;
mod entrance;
mod held;
mod leader;
mod lock;
mod report;
mod signal;

// How calls are executed.
mod call;
mod engine;
mod log;
mod port;

// The foundation.
mod arguments;
mod failure;
mod mutex;
mod own;
mod settings;
mod threads;

/// The locks of the Rust library, for the Python package around it.
#[pyo3::pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use crate::call::Call;
    #[pymodule_export]
    use crate::client::{Client, Owner, init, schema};
    #[pymodule_export]
    use crate::embedded::EmbeddedNode;
    #[pymodule_export]
    use crate::engine::Engine;
    #[pymodule_export]
    use crate::entrance::Entrance;
    #[pymodule_export]
    use crate::held::{Grant, Held, HeldByThread};
    #[pymodule_export]
    use crate::leader::{Candidacy, Leadership, Observer};
    #[pymodule_export]
    use crate::lock::Lock;
    #[pymodule_export]
    use crate::port::Port;
    #[pymodule_export]
    use crate::signal::Signal;
    #[pymodule_export]
    use crate::threads::set_main_thread;
}
