//! The check of a hold in a transaction of SQLite.

use std::collections::BTreeMap;

use quorlock_core::time::WallMillis;
use rusqlite::{Error, ErrorCode, OptionalExtension, Transaction};

use super::{NOW, failed, number};
use crate::check_in::{CheckIn, CheckInError, Claims};
use crate::store::Key;

impl CheckIn for Transaction<'_> {
    type Checked<'t>
        = Result<(), CheckInError>
    where
        Self: 't;

    fn check_in(&mut self, claims: Claims) -> Result<(), CheckInError> {
        let checked = check(self, &claims);
        if checked.is_err() {
            // What follows is outside of a transaction, and so is the commit, which fails.
            let _ = self.execute_batch("ROLLBACK");
        }
        checked
    }
}

/// A transaction that has read a file is not committed after another one has written it, so a read locks the records. In
/// another file, which is attached, they would not be locked: hence `main`.
fn check(transaction: &Transaction<'_>, claims: &Claims) -> Result<(), CheckInError> {
    let wrong = |error: Error| match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => CheckInError::Conflict,
        _ => CheckInError::Failed(failed(error)),
    };
    let sql = format!("SELECT record, {NOW} FROM main.quorlock WHERE key = ?1");
    let mut find = transaction.prepare(&sql).map_err(wrong)?;
    let mut now = WallMillis::default();
    let mut records: BTreeMap<Key, Vec<u8>> = BTreeMap::new();
    for key in claims.keys() {
        let row = find.query_row([key.as_bytes()], |row| Ok((row.get(0)?, number(row, 1)?)));
        if let Some((record, shown)) = row.optional().map_err(wrong)? {
            records.insert(key, record);
            now = WallMillis(shown);
        }
    }
    claims.check(now, |key| records.get(key).map(Vec::as_slice))
}
