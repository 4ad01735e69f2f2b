//! The check of a hold in a transaction of MySQL or MariaDB.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;

use mysql_async::prelude::Queryable;
use mysql_async::{Error, Row, Transaction};
use quorlock_core::time::WallMillis;

use super::error::{failed, is_conflict};
use super::{now, take};
use crate::check_in::{CheckIn, CheckInError, Claims};
use crate::database::Phase;
use crate::store::Key;

impl CheckIn for Transaction<'_> {
    type Checked<'t>
        = Pin<Box<dyn Future<Output = Result<(), CheckInError>> + Send + 't>>
    where
        Self: 't;

    fn check_in(&mut self, claims: Claims) -> Self::Checked<'_> {
        Box::pin(async move {
            let checked = check(self, &claims).await;
            if checked.is_err() {
                // No error of a statement keeps a transaction from its commit, and after a rollback each further statement is committed by
                // itself. So the connection is ended, and with it the transaction. Both are to fail.
                let _ = self.query_drop("ROLLBACK").await;
                let _ = self.query_drop("KILL CONNECTION_ID()").await;
            }
            checked
        })
    }
}

/// A row that is locked is read in its latest version, and is not written until the transaction ends.
async fn check(transaction: &mut Transaction<'_>, claims: &Claims) -> Result<(), CheckInError> {
    let wrong = |error: Error| match is_conflict(&error) {
        true => CheckInError::Conflict,
        false => CheckInError::Failed(failed(&error, Phase::Read)),
    };
    // Keys are bytes, whatever the connection takes a text for.
    let keys = claims.keys().map(|key| {
        let digits = key.as_bytes().iter().map(|byte| format!("{byte:02x}"));
        format!("x'{}'", digits.collect::<String>())
    });
    let keys: Vec<String> = keys.collect();
    let sql = format!(
        "SELECT `key`, record, {} FROM quorlock WHERE `key` IN ({}) ORDER BY `key` LOCK IN SHARE MODE",
        now!(),
        keys.join(", ")
    );
    let rows: Vec<Row> = transaction.query(sql).await.map_err(wrong)?;
    let mut now = WallMillis::default();
    let mut records: BTreeMap<Key, Vec<u8>> = BTreeMap::new();
    for mut row in rows {
        let key: Vec<u8> = take(&mut row, 0).map_err(CheckInError::Failed)?;
        let record = take(&mut row, 1).map_err(CheckInError::Failed)?;
        records.insert(Key::new(key), record);
        now = now.max(WallMillis(take(&mut row, 2).map_err(CheckInError::Failed)?));
    }
    claims.check(now, |key| records.get(key).map(Vec::as_slice))
}
