//! A held lock.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use quorlock::errors::HandOverProblem;
use quorlock::{Guard, Lost, LostSignal, Name, Ticket};

use crate::arguments::{NameArgument, Span, text};
use crate::call::Call;
use crate::engine::ClientState;
use crate::failure;
use crate::mutex::locked;
use crate::own::Own;
use crate::signal::Signal;

/// What an acquisition was granted. The object of Python that holds the lock is made of it; if it is dropped, it is released.
#[pyclass(frozen, module = "quorlock._native")]
pub(crate) struct Grant(Own<Mutex<Option<Granted>>>);

struct Granted {
    client: Arc<ClientState>,
    guard: Guard,
}

impl Grant {
    pub(crate) fn new(client: Arc<ClientState>, guard: Guard) -> Self {
        Grant(Own::new(Mutex::new(Some(Granted { client, guard }))))
    }
}

/// A held lock, which is released when the object is no longer used.
#[pyclass(frozen, subclass, module = "quorlock._native")]
pub(crate) struct Held(Own<Hold>);

struct Hold {
    client: Arc<ClientState>,
    token: u64,
    state: Mutex<State>,
}

enum State {
    Held(Guard),
    /// It was released, or is being released.
    Over(Facts),
}

/// Why a hold was not handed over, and the message about it.
type NotHandedOver = (HandOverProblem, String);

/// What a guard still tells when it was released.
struct Facts {
    names: Vec<Name>,
    tokens: Vec<u64>,
    owner: String,
    lost: LostSignal,
}

impl Facts {
    fn of(guard: &Guard) -> Self {
        let names: Vec<Name> = guard.names().cloned().collect();
        let tokens = names
            .iter()
            .filter_map(|name| guard.fencing_token_of(name.as_bytes()));
        Facts {
            tokens: tokens.map(|token| token.0).collect(),
            owner: guard.owner_id().to_string(),
            lost: guard.lost(),
            names,
        }
    }
}

impl State {
    /// Ends the hold of this object, and returns its guard.
    fn end(&mut self) -> Option<Guard> {
        let facts = match self {
            State::Held(guard) => Facts::of(guard),
            State::Over(_) => return None,
        };
        match std::mem::replace(self, State::Over(facts)) {
            State::Held(guard) => Some(guard),
            State::Over(_) => None,
        }
    }
}

impl Hold {
    fn end(&self) -> Option<Guard> {
        locked(&self.state).end()
    }

    /// Hands the hold over. If it cannot, the object goes on holding, and no other thread has seen it otherwise.
    fn hand_over(&self) -> Option<Result<Ticket, NotHandedOver>> {
        let mut state = locked(&self.state);
        let handed_over = state.end()?.hand_over();
        Some(handed_over.map_err(|error| {
            let message = error.to_string();
            *state = State::Held(error.guard);
            (error.problem, message)
        }))
    }

    fn signal(&self) -> LostSignal {
        match &*locked(&self.state) {
            State::Held(guard) => guard.lost(),
            State::Over(facts) => facts.lost.clone(),
        }
    }

    /// How the lock was lost, if it was.
    fn lost(&self) -> Option<Lost> {
        match &*locked(&self.state) {
            State::Held(guard) => guard.lost().now_or_never(),
            // Its signal may not have been fired yet: another guard may hold the lock.
            State::Over(facts) => Some(facts.lost.clone().now_or_never().unwrap_or(Lost::Released)),
        }
    }

    /// Reads what only a guard that holds tells.
    fn read<T>(&self, held: impl FnOnce(&Guard) -> T, over: T) -> T {
        match &*locked(&self.state) {
            State::Held(guard) => held(guard),
            State::Over(_) => over,
        }
    }
}

#[pymethods]
impl Held {
    /// Takes what was granted.
    #[new]
    fn new(grant: &Grant) -> PyResult<Self> {
        let granted = locked(grant.0.get()?).take();
        let Granted { client, guard } = granted.ok_or_else(failure::begun)?;
        Ok(Held(Own::new(Hold {
            client,
            token: guard.fencing_token().0,
            state: Mutex::new(State::Held(guard)),
        })))
    }

    /// The fencing token: larger than that of every exclusive hold of the name that was won before this one was requested.
    ///
    /// Send it to the resource with every write. A resource that rejects smaller tokens is safe even from a holder that was suspended.
    #[getter]
    fn token(&self) -> PyResult<u64> {
        Ok(self.0.get()?.token)
    }

    /// Returns the token of one of several names, or `None` if the guard does not hold that name.
    fn token_of(&self, name: NameArgument) -> PyResult<Option<u64>> {
        let name = name.0;
        Ok(match &*locked(&self.0.get()?.state) {
            State::Held(guard) => guard.fencing_token_of(name).map(|token| token.0),
            State::Over(facts) => {
                let at = facts.names.iter().position(|held| held.as_bytes() == name);
                at.and_then(|at| facts.tokens.get(at).copied())
            }
        })
    }

    /// The held names, without the key prefix, in canonical order. Bytes that are not UTF-8 are surrogates, as in names of files.
    #[getter]
    fn names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let names: Vec<Name> = match &*locked(&self.0.get()?.state) {
            State::Held(guard) => guard.names().cloned().collect(),
            State::Over(facts) => facts.names.clone(),
        };
        let names: PyResult<Vec<Bound<'py, PyString>>> =
            names.iter().map(|name| text(py, name)).collect();
        PyTuple::new(py, names?)
    }

    /// The identity under which the nodes store the claim.
    #[getter]
    fn owner_id(&self) -> PyResult<String> {
        Ok(match &*locked(&self.0.get()?.state) {
            State::Held(guard) => guard.owner_id().to_string(),
            State::Over(facts) => facts.owner.clone(),
        })
    }

    /// The number of guards that share this hold: 1, and one more for each re-entry; 0 after the release.
    #[getter]
    fn hold_count(&self) -> PyResult<u32> {
        Ok(self.0.get()?.read(Guard::hold_count, 0))
    }

    /// For how many seconds the lock stays valid without another renewal; zero if it is lost. No request is sent.
    #[getter]
    fn validity(&self) -> PyResult<f64> {
        let validity = self.0.get()?.read(Guard::validity, Duration::ZERO);
        Ok(validity.as_secs_f64())
    }

    /// Whether the lock is held. No request is sent.
    #[getter]
    fn is_held(&self) -> PyResult<bool> {
        Ok(self.0.get()?.read(Guard::is_held, false))
    }

    /// Raises `LostError` if the lock is lost, or was released. No request is sent.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        match self.0.get()?.lost() {
            None => Ok(()),
            Some(lost) => Err(failure::lost(py, lost)),
        }
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let class = slf.get_type().name()?;
        let Ok(hold) = slf.get().0.get() else {
            return Ok(format!("<{class} of the parent of this process>"));
        };
        let names = match &*locked(&hold.state) {
            State::Held(guard) => joined(guard.names()),
            State::Over(facts) => joined(facts.names.iter()),
        };
        let state = hold.lost().map_or("held", failure::how);
        Ok(format!(
            "<{class} of {names}, {state}, token {}>",
            hold.token
        ))
    }

    /// Returns the signal of a loss, which does not hold the lock.
    fn _signal(&self) -> PyResult<Signal> {
        let hold = self.0.get()?;
        Ok(Signal::new(hold.client.clone(), hold.signal()))
    }

    /// Extends the lock to this lease from now on.
    fn _extend(&self, lease: Span) -> PyResult<Call> {
        let hold = self.0.get()?;
        let extending = match &*locked(&hold.state) {
            State::Held(guard) => guard.extending(lease.0),
            State::Over(_) => return Err(Python::attach(failure::over)),
        };
        Ok(Call::new(&hold.client.engine, async move {
            let extended = match extending {
                Ok(extending) => extending.await,
                Err(error) => Err(error),
            };
            move |py: Python<'_>| match extended {
                Ok(()) => Ok(py.None()),
                Err(error) => Err(failure::confirm(py, &error)),
            }
        }))
    }

    /// Enters the hold once more. The result is a `Grant`.
    fn _reenter(&self, py: Python<'_>) -> PyResult<Call> {
        let hold = self.0.get()?;
        let entering = match &*locked(&hold.state) {
            State::Held(guard) => guard.reentering(),
            State::Over(_) => return Err(failure::over(py)),
        };
        let client = hold.client.clone();
        Ok(Call::new(&hold.client.engine, async move {
            let entered = entering.await;
            move |py: Python<'_>| match entered {
                Ok(guard) => Ok(Py::new(py, Grant::new(client, guard))?.into_any()),
                Err(error) => Err(failure::confirm(py, &error)),
            }
        }))
    }

    /// Releases the lock. The result is `None`.
    pub(crate) fn _release(&self, py: Python<'_>) -> PyResult<Call> {
        let hold = self.0.get()?;
        let guard = hold.end().ok_or_else(|| failure::over(py))?;
        Ok(Call::new(&hold.client.engine, async move {
            let released = guard.release().await;
            move |py: Python<'_>| match released {
                Ok(()) => Ok(py.None()),
                Err(error) => Err(failure::release(py, &error)),
            }
        }))
    }

    /// Ends this guard and returns a ticket, with which another process goes on holding the lock (`Locks.adopt`).
    ///
    /// Nothing is sent, and nothing is renewed from now on: the ticket is good for `validity`, which `extend` makes longer. After that
    /// the lock goes to the client that asks first. This process must not use the lock any more; `lost` is set. A ticket is text
    /// without spaces and line breaks. A reader of it can take the lock, so treat it as a secret.
    ///
    /// Raises `LostError` if the lock is lost, and `HandOverError` for a lock that cannot be handed over, which the guard holds as
    /// before.
    fn hand_over(&self, py: Python<'_>) -> PyResult<String> {
        let hold = self.0.get()?;
        match hold.hand_over() {
            Some(Ok(ticket)) => Ok(ticket.to_string()),
            Some(Err((problem, message))) => Err(failure::hand_over(py, problem, message)),
            None => Err(failure::over(py)),
        }
    }

    /// Leaves the lock locked until its lease ends, without renewing it.
    fn leak(&self, py: Python<'_>) -> PyResult<()> {
        let guard = self.0.get()?.end().ok_or_else(|| failure::over(py))?;
        guard.leak();
        Ok(())
    }
}

fn joined<'n>(names: impl Iterator<Item = &'n Name>) -> String {
    let names: Vec<String> = names.map(ToString::to_string).collect();
    names.join(", ")
}

impl Held {
    /// Releases the lock at the end of a block, from which an exception may have been raised.
    pub(crate) fn leave(&self, py: Python<'_>, is_raised: bool) -> PyResult<()> {
        let released = self._release(py).and_then(|call| call.run(py, None));
        match released {
            Err(error) if failure::is_worth_raising(py, &error, is_raised)? => Err(error),
            _ => Ok(()),
        }
    }
}

/// A held lock whose block is one of a thread: its end waits for the release.
#[pyclass(extends = Held, frozen, subclass, module = "quorlock._native")]
pub(crate) struct HeldByThread;

#[pymethods]
impl HeldByThread {
    #[new]
    fn new(grant: &Grant) -> PyResult<PyClassInitializer<Self>> {
        Ok(PyClassInitializer::from(Held::new(grant)?).add_subclass(HeldByThread))
    }

    fn __enter__<'py>(slf: &Bound<'py, Self>) -> Bound<'py, Self> {
        slf.clone()
    }

    #[pyo3(signature = (kind, *_error))]
    fn __exit__(
        slf: &Bound<'_, Self>,
        kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyTuple>,
    ) -> PyResult<()> {
        slf.as_super().get().leave(slf.py(), !kind.is_none())
    }
}
