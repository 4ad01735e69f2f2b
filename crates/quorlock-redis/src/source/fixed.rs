//! A source with one endpoint, which the user gave.

use std::future::ready;
use std::time::Duration;

use quorlock_core::transport::TransportError;
use redis::{Cmd, Value};

use super::{Finding, Lead, Source, Whence, Wrong};
use crate::connect::Endpoint;

/// Always returns the same endpoint, whatever server answers there.
#[derive(Debug)]
pub(crate) struct Fixed(pub(crate) Endpoint);

impl Source for Fixed {
    fn find(&self) -> Finding<'_> {
        Box::pin(ready(Ok(Lead {
            whence: Whence {
                endpoint: self.0.clone(),
                named_by: None,
            },
            recall: None,
        })))
    }

    fn question(&self) -> Option<Cmd> {
        None
    }

    fn judge(&self, _: &Value) -> Result<(), TransportError> {
        Ok(())
    }

    fn was_wrong(&self, _: &Whence, _: Wrong<'_>) -> Option<Duration> {
        None
    }
}
