//! A table with transactions.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::rc::Rc;

use quorlock::Token;

use super::{CallError, Service, ServiceClient};
use crate::context::Context;

/// A table of rows by key, which transactions change. Committed rows survive crashes.
///
/// Transactions are serializable. If two of them conflict, the one that commits later is refused
/// ([`TransactionError::Conflict`]). A transaction that [carries a token](Transaction::fence) is refused if a
/// transaction with a larger token has been committed.
pub struct Table<R> {
    state: Rc<RefCell<Rows<R>>>,
    service: Service<Statement<R>, Done<R>>,
}

#[derive(Debug)]
struct Rows<R> {
    /// Each row with its version, which grows with every change of the row.
    rows: BTreeMap<String, (u64, R)>,
    next: u64,
    largest: Option<Token>,
}

/// A request to a table.
enum Statement<R> {
    Select(String),
    Commit(Changes<R>),
}

/// The reads and writes of a transaction.
#[derive(Debug)]
struct Changes<R> {
    /// The version of each row that was read; 0 for a missing row.
    read: BTreeMap<String, u64>,
    written: BTreeMap<String, R>,
    token: Option<Token>,
}

impl<R: Debug> Debug for Statement<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Statement::Select(key) => write!(f, "select {key}"),
            Statement::Commit(changes) => {
                write!(f, "commit {:?}", changes.written)?;
                let token = changes.token;
                token.map_or(Ok(()), |token| write!(f, ", token {}", token.0))
            }
        }
    }
}

/// The answer of a table.
#[derive(Debug)]
enum Done<R> {
    Row(Option<(u64, R)>),
    Committed,
    Conflict(String),
    Stale(Token),
}

/// The reason why a transaction was not committed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TransactionError {
    /// The table was down or did not answer in time.
    #[error(transparent)]
    Call(#[from] CallError),
    /// A row that the transaction read has been changed since. Nothing was written, and the transaction can be started
    /// again.
    #[error("{row} was changed since it was read: start the transaction again")]
    Conflict {
        /// The key of the row.
        row: String,
    },
    /// The token is smaller than the largest one that was committed, so another client has acquired the lock since.
    /// Nothing was written.
    #[error("the token is older than {}, which was committed: another client has acquired the lock since", largest.0)]
    Stale {
        /// The largest token that was committed.
        largest: Token,
    },
}

impl<R: Clone> Rows<R> {
    fn answer(&mut self, statement: Statement<R>) -> Done<R> {
        match statement {
            Statement::Select(key) => Done::Row(self.rows.get(&key).cloned()),
            Statement::Commit(changes) => self.commit(changes),
        }
    }

    fn commit(&mut self, changes: Changes<R>) -> Done<R> {
        if let Some(largest) = self
            .largest
            .filter(|l| changes.token.is_some_and(|t| t < *l))
        {
            return Done::Stale(largest);
        }
        for (row, read) in changes.read {
            let now = self.rows.get(&row).map_or(0, |(version, _)| *version);
            if now != read {
                return Done::Conflict(row);
            }
        }
        self.largest = self.largest.max(changes.token);
        for (row, value) in changes.written {
            self.next += 1;
            self.rows.insert(row, (self.next, value));
        }
        Done::Committed
    }
}

impl<R: Clone + Debug + 'static> Table<R> {
    /// Creates an empty table. The report of a failure shows this name.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let state = Rc::new(RefCell::new(Rows {
            rows: BTreeMap::new(),
            next: 0,
            largest: None,
        }));
        let stored = Rc::clone(&state);
        let service = Service::new(name, move |ask| stored.borrow_mut().answer(ask));
        Table { state, service }
    }

    /// Adds a row that is in the table from the beginning.
    #[must_use]
    pub fn with(self, key: &str, row: R) -> Self {
        let mut state = self.state.borrow_mut();
        state.next += 1;
        let version = state.next;
        state.rows.insert(key.to_owned(), (version, row));
        drop(state);
        self
    }

    /// Returns a handle for one client.
    #[must_use]
    pub fn client(&self, ctx: &Context) -> TableClient<R> {
        TableClient(self.service.client(ctx))
    }

    /// Returns a row, for use by the test itself. Takes no time and cannot fail.
    #[must_use]
    pub fn peek(&self, key: &str) -> Option<R> {
        let state = self.state.borrow();
        state.rows.get(key).map(|(_, row)| row.clone())
    }
}

/// A client's handle to a [`Table`].
#[derive(Clone, Debug)]
pub struct TableClient<R>(ServiceClient<Statement<R>, Done<R>>);

impl<R: Clone + Debug + 'static> TableClient<R> {
    /// Begins a transaction.
    pub fn begin(&self) -> Transaction<'_, R> {
        Transaction {
            table: self,
            changes: Changes {
                read: BTreeMap::new(),
                written: BTreeMap::new(),
                token: None,
            },
        }
    }
}

/// A transaction. It writes nothing unless it is committed.
#[derive(Debug)]
#[must_use = "a transaction that is not committed writes nothing"]
pub struct Transaction<'a, R> {
    table: &'a TableClient<R>,
    changes: Changes<R>,
}

impl<R: Clone + Debug + 'static> Transaction<'_, R> {
    /// Makes the commit fail if a transaction with a larger token has been committed.
    pub fn fence(mut self, token: Token) -> Self {
        self.changes.token = Some(token);
        self
    }

    /// Returns the row, or the value that this transaction has put in its place.
    ///
    /// # Errors
    /// Returns [`CallError`] if the table is down or does not answer in time.
    pub async fn get(&mut self, key: &str) -> Result<Option<R>, CallError> {
        if let Some(own) = self.changes.written.get(key) {
            return Ok(Some(own.clone()));
        }
        let select = Statement::Select(key.to_owned());
        let Done::Row(row) = self.table.0.call(select).await? else {
            return Ok(None);
        };
        let version = row.as_ref().map_or(0, |(version, _)| *version);
        // The version of the first read counts. If the row has changed since then, the commit is a conflict.
        self.changes.read.entry(key.to_owned()).or_insert(version);
        Ok(row.map(|(_, row)| row))
    }

    /// Puts a row, which is written when the transaction commits.
    pub fn put(&mut self, key: &str, row: R) {
        self.changes.written.insert(key.to_owned(), row);
    }

    /// Commits the transaction: writes everything or nothing.
    ///
    /// # Errors
    /// Returns [`TransactionError`]. Without an answer, the transaction may have committed, or may commit later.
    pub async fn commit(self) -> Result<(), TransactionError> {
        match self.table.0.call(Statement::Commit(self.changes)).await? {
            Done::Committed | Done::Row(_) => Ok(()),
            Done::Conflict(row) => Err(TransactionError::Conflict { row }),
            Done::Stale(largest) => Err(TransactionError::Stale { largest }),
        }
    }
}

impl<R> Debug for Table<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Table").field(&self.service).finish()
    }
}
