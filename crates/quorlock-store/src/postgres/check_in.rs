//! The check of a hold in a transaction of PostgreSQL.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;

use quorlock_core::time::WallMillis;
use tokio_postgres::{Error, Transaction};

use super::error::{failed, is_conflict};
use crate::check_in::{CheckIn, CheckInError, Claims};
use crate::database::Phase;
use crate::store::Key;

/// A row that is locked for share is read in its latest version, and is not written until the transaction ends.
const LOCKED: &str = "SELECT key, record, (extract(epoch FROM clock_timestamp()) * 1000)::bigint FROM quorlock \
    WHERE key = ANY($1) ORDER BY key FOR SHARE";

/// A statement that fails. A commit of its transaction is a rollback.
const ABORT: &str = "DO $$ BEGIN RAISE EXCEPTION 'quorlock: the lock is not held any more'; END $$";

impl CheckIn for Transaction<'_> {
    type Checked<'t>
        = Pin<Box<dyn Future<Output = Result<(), CheckInError>> + Send + 't>>
    where
        Self: 't;

    fn check_in(&mut self, claims: Claims) -> Self::Checked<'_> {
        Box::pin(async move {
            let checked = check(self, &claims).await;
            if checked.is_err() {
                // It is to fail.
                let _ = self.batch_execute(ABORT).await;
            }
            checked
        })
    }
}

async fn check(transaction: &Transaction<'_>, claims: &Claims) -> Result<(), CheckInError> {
    let wrong = |error: Error| match is_conflict(&error) {
        true => CheckInError::Conflict,
        false => CheckInError::Failed(failed(&error, Phase::Read)),
    };
    let keys: Vec<Key> = claims.keys().collect();
    let keys: Vec<&[u8]> = keys.iter().map(Key::as_bytes).collect();
    let rows = transaction.query(LOCKED, &[&keys]).await.map_err(wrong)?;
    let mut now = WallMillis::default();
    let mut records: BTreeMap<Key, &[u8]> = BTreeMap::new();
    for row in &rows {
        let key: &[u8] = row.try_get(0).map_err(wrong)?;
        records.insert(Key::new(key), row.try_get(1).map_err(wrong)?);
        let shown: i64 = row.try_get(2).map_err(wrong)?;
        now = now.max(WallMillis(shown.unsigned_abs()));
    }
    claims.check(now, |key| records.get(key).copied())
}
