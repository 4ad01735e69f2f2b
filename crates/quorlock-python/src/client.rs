//! Clients, and owners of their locks.

use std::future::Future;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use quorlock::{ConnectError, Locks, Ticket};

use crate::arguments::{NameArgument, Span};
use crate::call::Call;
use crate::embedded::EmbeddedNode;
use crate::engine::{ClientState, Engine, EngineState};
use crate::failure;
use crate::leader::{Candidacy, Observer};
use crate::lock::{Lock, Mode, Terms, granted};
use crate::own::Own;
use crate::report;
use crate::settings;

/// A client of one node, or of a majority of several nodes.
#[pyclass(frozen, module = "quorlock._native")]
pub(crate) struct Client(Own<Arc<ClientState>>);

/// Makes a client on the thread of the engine, whose random numbers are not those of a parent.
fn connecting(
    engine: &Arc<EngineState>,
    made: impl Future<Output = Result<Locks, ConnectError>> + Send + 'static,
) -> Call {
    let adopter = engine.clone();
    Call::new(engine, async move {
        let made = made.await;
        move |py: Python<'_>| {
            let locks = made.map_err(|error| failure::connect(py, &error))?;
            let client = Client(Own::new(adopter.adopt(locks)));
            Ok(Py::new(py, client)?.into_any())
        }
    })
}

#[pymethods]
impl Client {
    /// Connects to one node, or to a majority of several nodes.
    #[staticmethod]
    fn connect(
        engine: &Engine,
        addresses: Vec<String>,
        is_lazy: bool,
        settings: &Bound<'_, PyDict>,
    ) -> PyResult<Call> {
        let builder = settings::builder(settings)?;
        Ok(connecting(engine.state()?, async move {
            match is_lazy {
                true => builder.quorum_lazy(addresses),
                false => builder.quorum(addresses).await,
            }
        }))
    }

    /// Connects to a majority of the shards of one cluster.
    #[staticmethod]
    fn shards(
        engine: &Engine,
        address: String,
        shards: usize,
        settings: &Bound<'_, PyDict>,
    ) -> PyResult<Call> {
        let builder = settings::builder(settings)?;
        let made = async move { builder.majority_of_shards(address, shards).await };
        Ok(connecting(engine.state()?, made))
    }

    /// Makes a client of nodes in this process.
    #[staticmethod]
    fn embedded(
        engine: &Engine,
        nodes: Vec<Bound<'_, EmbeddedNode>>,
        settings: &Bound<'_, PyDict>,
    ) -> PyResult<Call> {
        let builder = settings::builder(settings)?;
        let nodes: PyResult<Vec<_>> = nodes
            .iter()
            .map(|node| Ok(node.get().node()?.clone()))
            .collect();
        let nodes = nodes?;
        let made = async move { builder.on_nodes(nodes).map_err(ConnectError::from) };
        Ok(connecting(engine.state()?, made))
    }

    fn lock(&self, mode: &str, name: NameArgument, terms: Terms) -> PyResult<Lock> {
        let client = self.0.get()?;
        let (locks, name) = (&client.locks, name.0);
        let lock = match Mode::parse(mode)? {
            Mode::Plain => locks.lock(name),
            Mode::Fair => locks.fair(name),
            Mode::Read => locks.read(name),
            Mode::Write => locks.write(name),
        };
        Ok(Lock::of_lock(client, lock, &terms))
    }

    fn all(&self, names: Vec<NameArgument>, terms: Terms) -> PyResult<Lock> {
        let client = self.0.get()?;
        let lock = client.locks.all(names.into_iter().map(|name| name.0));
        Ok(Lock::of_lock(client, lock, &terms))
    }

    fn semaphore(&self, name: NameArgument, permits: usize, terms: Terms) -> PyResult<Lock> {
        let client = self.0.get()?;
        let semaphore = client.locks.semaphore(name.0, permits);
        Ok(Lock::of_semaphore(client, semaphore, &terms))
    }

    fn owner(&self) -> PyResult<Owner> {
        let client = self.0.get()?;
        let owner = client.locks.owner();
        Ok(Owner(Own::new((client.clone(), owner))))
    }

    /// Continues a hold that was handed over. The result is a `Grant`, or `None` if nothing is left of it.
    fn adopt(&self, py: Python<'_>, ticket: &str) -> PyResult<Call> {
        let client = self.0.get()?;
        let ticket: Ticket = ticket
            .parse()
            .map_err(|error| failure::ticket(py, &error))?;
        let holder = client.clone();
        Ok(Call::new(&client.engine, async move {
            let adopted = holder.locks.adopt(&ticket).await;
            move |py: Python<'_>| granted(py, holder, adopted)
        }))
    }

    /// Starts to campaign for the leadership of a name.
    fn campaign(
        &self,
        name: NameArgument,
        watchdog_lease: Option<Span>,
        rest: Option<Span>,
    ) -> PyResult<Candidacy> {
        let client = self.0.get()?;
        let mut candidate = client.locks.leader(name.0);
        if let Some(lease) = watchdog_lease {
            candidate = candidate.watchdog_lease(lease.0);
        }
        if let Some(rest) = rest {
            candidate = candidate.rest(rest.0);
        }
        Ok(Candidacy::new(client.clone(), candidate.campaign()))
    }

    fn observe(
        &self,
        py: Python<'_>,
        name: NameArgument,
        every: Option<Span>,
    ) -> PyResult<Observer> {
        let client = self.0.get()?;
        let observer = client.locks.observe_leader(name.0);
        let mut observer = observer.map_err(|error| failure::config(py, &error))?;
        if let Some(every) = every {
            observer = observer.every(every.0);
        }
        Ok(Observer::new(client.clone(), observer))
    }

    fn inspect(&self, name: NameArgument) -> PyResult<Call> {
        let client = self.0.get()?;
        let locks = client.locks.clone();
        Ok(Call::new(&client.engine, async move {
            let inspection = locks.inspect(name.0).await;
            move |py: Python<'_>| match inspection {
                Ok(inspection) => report::inspection(py, &inspection),
                Err(error) => Err(failure::config(py, &error)),
            }
        }))
    }

    /// Returns the number of nodes that ended a claim.
    fn force_release(&self, name: NameArgument) -> PyResult<Call> {
        let client = self.0.get()?;
        let locks = client.locks.clone();
        Ok(Call::new(&client.engine, async move {
            let released = locks.force_release(name.0).await;
            move |py: Python<'_>| match released {
                Ok(released) => Ok(released.freed().into_pyobject(py)?.into_any().unbind()),
                Err(error) => Err(failure::force(py, &error)),
            }
        }))
    }

    fn ready(&self) -> PyResult<Call> {
        let client = self.0.get()?;
        let locks = client.locks.clone();
        Ok(Call::new(&client.engine, async move {
            let ready = locks.ready().await;
            move |py: Python<'_>| match ready {
                Ok(()) => Ok(py.None()),
                Err(error) => Err(failure::acquire(py, &error)),
            }
        }))
    }

    fn close(&self) -> PyResult<Call> {
        let client = self.0.get()?;
        let locks = client.locks.clone();
        Ok(Call::new(&client.engine, async move {
            locks.close().await;
            |py: Python<'_>| Ok(py.None())
        }))
    }

    /// Returns the number of holds.
    #[getter]
    fn held(&self) -> PyResult<usize> {
        Ok(self.0.get()?.locks.held())
    }
}

/// An identity whose locks are reentrant.
#[pyclass(frozen, module = "quorlock._native")]
pub(crate) struct Owner(Own<(Arc<ClientState>, quorlock::Owner)>);

#[pymethods]
impl Owner {
    fn lock(&self, mode: &str, name: NameArgument, terms: Terms) -> PyResult<Lock> {
        let (client, owner) = self.0.get()?;
        let name = name.0;
        let lock = match Mode::parse(mode)? {
            Mode::Plain => owner.lock(name),
            Mode::Fair => owner.fair(name),
            Mode::Read => owner.read(name),
            Mode::Write => owner.write(name),
        };
        Ok(Lock::of_lock(client, lock, &terms))
    }

    fn all(&self, names: Vec<NameArgument>, terms: Terms) -> PyResult<Lock> {
        let (client, owner) = self.0.get()?;
        let lock = owner.all(names.into_iter().map(|name| name.0));
        Ok(Lock::of_lock(client, lock, &terms))
    }

    fn semaphore(&self, name: NameArgument, permits: usize, terms: Terms) -> PyResult<Lock> {
        let (client, owner) = self.0.get()?;
        let semaphore = owner.semaphore(name.0, permits);
        Ok(Lock::of_semaphore(client, semaphore, &terms))
    }
}

/// Makes the table that locks need at an address. Returns whether there is one.
#[pyfunction]
pub(crate) fn init(engine: &Engine, address: String) -> PyResult<Call> {
    Ok(Call::new(engine.state()?, async move {
        let made = Locks::init(address).await;
        move |py: Python<'_>| match made {
            Ok(made) => Ok(made.into_pyobject(py)?.to_owned().into_any().unbind()),
            Err(error) => Err(failure::connect(py, &error)),
        }
    }))
}

/// Returns the SQL that `init` executes, or `None`.
#[pyfunction]
pub(crate) fn schema(py: Python<'_>, address: &str) -> PyResult<Option<&'static str>> {
    Locks::schema(address).map_err(|error| failure::connect(py, &error))
}
