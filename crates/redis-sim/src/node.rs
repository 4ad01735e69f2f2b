//! One node as its commands see it: its data, its scripts, its connections.

use std::cell::{RefCell, RefMut};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use crate::call::Lookup;
use crate::data::{Data, Dataset};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::request::Trust;
use crate::script::Scripts;
use crate::session::{Awaited, Session, SessionId};

/// The state of a node and its connections.
#[derive(Debug)]
pub(crate) struct Node {
    data: Rc<RefCell<Data>>,
    pub(crate) scripts: Scripts,
    sessions: BTreeMap<SessionId, Session>,
    last_session: u64,
    password: Option<Password>,
    /// Connections that have begun to wait for replicas since the caller last took them.
    pub(crate) awaited: Vec<Awaited>,
}

/// A password, which `Debug` does not show.
struct Password(Vec<u8>);

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl Node {
    pub(crate) fn new(data: Data, lookup: Lookup) -> Self {
        let data = Rc::new(RefCell::new(data));
        Node {
            scripts: Scripts::new(Rc::clone(&data), lookup),
            data,
            sessions: BTreeMap::new(),
            last_session: 0,
            password: None,
            awaited: Vec::new(),
        }
    }

    pub(crate) fn set_password(&mut self, password: &str) {
        self.password = Some(Password(password.as_bytes().to_vec()));
    }

    pub(crate) fn open_session(&mut self) -> SessionId {
        self.last_session += 1;
        let id = SessionId(self.last_session);
        self.sessions.insert(id, Session::new(self.first_trust()));
        self.data.borrow_mut().clients = self.sessions.len();
        id
    }

    /// Closes a session. Does nothing if it is closed already.
    pub(crate) fn close_session(&mut self, session: SessionId) {
        self.sessions.remove(&session);
        let mut data = self.data.borrow_mut();
        data.channels.forget(session);
        data.clients = self.sessions.len();
    }

    /// Replaces the process by another one with these keys and no connections or scripts.
    pub(crate) fn restart(&mut self, keys: Dataset) {
        self.sessions.clear();
        self.awaited.clear();
        self.scripts.forget();
        self.data.borrow_mut().restart(keys);
    }

    /// Returns the session, if it is open.
    pub(crate) fn find_session(&self, session: SessionId) -> Option<&Session> {
        self.sessions.get(&session)
    }

    /// Returns the session for changes, if it is open.
    pub(crate) fn find_session_mut(&mut self, session: SessionId) -> Option<&mut Session> {
        self.sessions.get_mut(&session)
    }

    pub(crate) fn all_sessions(&self) -> impl Iterator<Item = (SessionId, &Session)> {
        self.sessions.iter().map(|(id, state)| (*id, state))
    }

    pub(crate) fn data(&self) -> RefMut<'_, Data> {
        self.data.borrow_mut()
    }

    pub(crate) fn session(&mut self, session: SessionId) -> &mut Session {
        self.sessions
            .get_mut(&session)
            .expect("BUG: a command on no connection")
    }

    pub(crate) fn sessions(&self) -> Vec<SessionId> {
        self.sessions.keys().copied().collect()
    }

    /// Closes the connections that wait for replicas, with an error, because the server has become a replica.
    pub(crate) fn end_waits(&mut self) {
        self.awaited.clear();
        let refusal = Reply::from(Refusal::UNBLOCKED);
        for state in self.sessions.values_mut().filter(|state| state.is_blocked) {
            state.is_blocked = false;
            state.is_closing = true;
            state.write(&refusal);
        }
    }

    /// Writes a reply to a connection.
    pub(crate) fn say(&mut self, session: SessionId, reply: &Reply) {
        if let Some(state) = self.sessions.get_mut(&session) {
            state.write(reply);
        }
    }

    pub(crate) fn first_trust(&self) -> Trust {
        match self.password {
            Some(_) => Trust::Stranger,
            None => Trust::Known,
        }
    }

    pub(crate) fn has_password(&self) -> bool {
        self.password.is_some()
    }

    /// Returns whether the password is right. If the server has none, any password is.
    pub(crate) fn takes_password(&self, given: &[u8]) -> bool {
        self.password
            .as_ref()
            .is_none_or(|password| password.0 == given)
    }
}
