//! A key-value store, with or without fencing tokens.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::rc::Rc;

use quorlock::Token;

use super::{CallError, Service, ServiceClient};
use crate::context::Context;

/// A store of values by key. The values survive crashes.
///
/// For each key, it remembers the largest [fencing token](quorlock::Guard::fencing_token) of fenced reads and writes,
/// and rejects fenced requests with a smaller token. Requests without a token are always executed.
pub struct KeyValueStore<V> {
    state: Rc<RefCell<StoreState<V>>>,
    service: Service<Ask<V>, Result<Option<V>, Stale>>,
}

#[derive(Debug)]
struct StoreState<V> {
    values: BTreeMap<String, V>,
    largest: BTreeMap<String, Token>,
}

/// A request to a store.
enum Ask<V> {
    Get(String, Option<Token>),
    Put(String, V, Option<Token>),
}

impl<V: Debug> Debug for Ask<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let token = match self {
            Ask::Get(key, token) => {
                write!(f, "get {key}")?;
                token
            }
            Ask::Put(key, value, token) => {
                write!(f, "put {key} = {value:?}")?;
                token
            }
        };
        token.map_or(Ok(()), |token| write!(f, ", token {}", token.0))
    }
}

/// The request's token was smaller than this one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stale(Token);

/// The reason why a request to a store failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StoreError {
    /// The store was down or did not answer in time.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The token is smaller than the largest one that the store has seen for the key, so another client has acquired
    /// the lock since. The request had no effect.
    #[error("the token is older than {}, which the store has seen: another client has acquired the lock since", largest.0)]
    Stale {
        /// The largest token that the store has seen for the key.
        largest: Token,
    },
}

impl<V> StoreState<V> {
    fn fence(&mut self, key: &str, token: Option<Token>) -> Result<(), Stale> {
        let Some(token) = token else {
            return Ok(());
        };
        let largest = self.largest.entry(key.to_owned()).or_insert(token);
        if token < *largest {
            return Err(Stale(*largest));
        }
        *largest = token;
        Ok(())
    }
}

impl<V: Clone + Debug + 'static> KeyValueStore<V> {
    /// Creates an empty store. The report of a failure shows this name.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let state = Rc::new(RefCell::new(StoreState {
            values: BTreeMap::new(),
            largest: BTreeMap::new(),
        }));
        let stored = Rc::clone(&state);
        let service = Service::new(name, move |ask| {
            let mut state = stored.borrow_mut();
            match ask {
                Ask::Get(key, token) => {
                    state.fence(&key, token)?;
                    Ok(state.values.get(&key).cloned())
                }
                Ask::Put(key, value, token) => {
                    state.fence(&key, token)?;
                    Ok(state.values.insert(key, value))
                }
            }
        });
        KeyValueStore { state, service }
    }

    /// Adds a value that is in the store from the beginning.
    #[must_use]
    pub fn with(self, key: &str, value: V) -> Self {
        let mut state = self.state.borrow_mut();
        state.values.insert(key.to_owned(), value);
        drop(state);
        self
    }

    /// Returns a handle for one client.
    #[must_use]
    pub fn client(&self, ctx: &Context) -> KeyValueClient<V> {
        KeyValueClient(self.service.client(ctx))
    }

    /// Returns the value of a key, for use by the test itself. Takes no time and cannot fail.
    #[must_use]
    pub fn peek(&self, key: &str) -> Option<V> {
        self.state.borrow().values.get(key).cloned()
    }
}

/// A client's handle to a [`KeyValueStore`].
#[derive(Clone, Debug)]
pub struct KeyValueClient<V>(ServiceClient<Ask<V>, Result<Option<V>, Stale>>);

impl<V: Clone + Debug + 'static> KeyValueClient<V> {
    async fn ask(&self, ask: Ask<V>) -> Result<Option<V>, StoreError> {
        let answer = self.0.call(ask).await?;
        answer.map_err(|Stale(largest)| StoreError::Stale { largest })
    }

    /// Reads the value of a key.
    ///
    /// # Errors
    /// Returns [`StoreError::Call`] if the store is down or does not answer in time.
    pub async fn get(&self, key: &str) -> Result<Option<V>, StoreError> {
        self.ask(Ask::Get(key.to_owned(), None)).await
    }

    /// Reads the value of a key with a token. The store then rejects fenced writes with a smaller token, so the value
    /// stays the same until this holder or a later one writes.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store is down or does not answer in time, or if the token is stale.
    pub async fn get_fenced(&self, key: &str, token: Token) -> Result<Option<V>, StoreError> {
        self.ask(Ask::Get(key.to_owned(), Some(token))).await
    }

    /// Writes the value of a key. Returns the previous value.
    ///
    /// # Errors
    /// Returns [`StoreError::Call`] if the store is down or does not answer in time.
    pub async fn put(&self, key: &str, value: V) -> Result<Option<V>, StoreError> {
        self.ask(Ask::Put(key.to_owned(), value, None)).await
    }

    /// Writes the value of a key, unless the store has seen a larger token. Returns the previous value.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store is down or does not answer in time, or if the token is stale.
    pub async fn put_fenced(
        &self,
        key: &str,
        value: V,
        token: Token,
    ) -> Result<Option<V>, StoreError> {
        self.ask(Ask::Put(key.to_owned(), value, Some(token))).await
    }
}

impl<V> Debug for KeyValueStore<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("KeyValueStore").field(&self.service).finish()
    }
}
