//! Witnesses, which wait for a connection without making a call.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use quorlock_core::transport::Witness;

use super::ConnectionManager;

/// Witnesses in the order of their arrival.
#[derive(Default)]
pub(crate) struct Witnesses {
    present: BTreeMap<u64, Arc<dyn Witness>>,
    last_number: u64,
}

impl Witnesses {
    pub(crate) fn add(&mut self, witness: Arc<dyn Witness>) -> u64 {
        self.last_number += 1;
        self.present.insert(self.last_number, witness);
        self.last_number
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<Arc<dyn Witness>> {
        self.present.remove(&number)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.present.is_empty()
    }

    pub(crate) fn all(&self) -> Vec<Arc<dyn Witness>> {
        self.present.values().cloned().collect()
    }
}

impl fmt::Debug for Witnesses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.present.keys()).finish()
    }
}

/// Keeps a witness registered until this value is dropped.
pub(crate) struct Attendance {
    connection: Arc<ConnectionManager>,
    number: u64,
}

impl Attendance {
    pub(super) fn new(connection: Arc<ConnectionManager>, number: u64) -> Self {
        Attendance { connection, number }
    }
}

impl Drop for Attendance {
    fn drop(&mut self) {
        self.connection.leave(self.number);
    }
}
