//! The ledger: who has bought which seat, in SQL.

use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use rusqlite::{Connection, OptionalExtension as _, params};
use serde::{Deserialize, Serialize};

const TABLE: &str =
    "CREATE TABLE seats (number INTEGER PRIMARY KEY, buyer TEXT, token INTEGER NOT NULL DEFAULT 0)";

/// Who has the seat? From now on, smaller tokens are refused.
const LOOK: &str = "UPDATE seats SET token = ?2 WHERE number = ?1 AND token <= ?2 RETURNING buyer";

/// Writes a sale, unless there was a later hold of the seat.
pub const SELL: &str = "UPDATE seats SET buyer = ?3 WHERE number = ?1 AND token <= ?2";

/// Writes a sale. This was the first version: it does not compare the tokens.
pub const SELL_UNFENCED: &str = "UPDATE seats SET buyer = ?3 WHERE number = ?1";

/// The seats of a show.
#[derive(Clone, Debug)]
pub struct Ledger {
    database: Arc<Mutex<Connection>>,
    sell: &'static str,
}

/// A look at a seat, under a lock with this token.
#[derive(Debug, Serialize, Deserialize)]
pub struct Look {
    /// The number of the seat.
    pub seat: u32,
    /// The fencing token of the lock.
    pub token: u64,
}

/// A sale of a seat, under a lock with this token.
#[derive(Debug, Serialize, Deserialize)]
pub struct Sale {
    /// The number of the seat.
    pub seat: u32,
    /// The fencing token of the lock.
    pub token: u64,
    /// The name of the buyer.
    pub buyer: String,
}

impl Ledger {
    /// Creates a ledger of free seats, numbered from 1. `sell` is the SQL that writes a sale.
    ///
    /// # Errors
    /// That of the database.
    pub fn open(seats: u32, sell: &'static str) -> rusqlite::Result<Self> {
        let database = Connection::open_in_memory()?;
        database.execute(TABLE, [])?;
        for seat in 1..=seats {
            database.execute("INSERT INTO seats (number) VALUES (?1)", [seat])?;
        }
        Ok(Ledger {
            database: Arc::new(Mutex::new(database)),
            sell,
        })
    }

    /// Returns the service: `POST /look` and `POST /sell`. It answers 409 if there was a later hold.
    pub fn service(self) -> Router {
        Router::new()
            .route("/look", post(look))
            .route("/sell", post(sell))
            .with_state(self)
    }

    fn ask<T>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<Option<T>>,
    ) -> Result<T, StatusCode> {
        let database = self.database.lock();
        let answer = query(&database.unwrap_or_else(PoisonError::into_inner));
        match answer {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => Err(StatusCode::CONFLICT),
            Err(_) => Err(StatusCode::INTERNAL_SERVER_ERROR),
        }
    }
}

async fn look(
    State(ledger): State<Ledger>,
    Json(look): Json<Look>,
) -> Result<Json<Option<String>>, StatusCode> {
    let buyer = ledger.ask(|database| {
        let buyer = |row: &rusqlite::Row<'_>| row.get(0);
        let found = database.query_row(LOOK, params![look.seat, look.token.cast_signed()], buyer);
        found.optional()
    });
    buyer.map(Json)
}

async fn sell(State(ledger): State<Ledger>, Json(sale): Json<Sale>) -> Result<(), StatusCode> {
    ledger.ask(|database| {
        let token = sale.token.cast_signed();
        let rows = database.execute(ledger.sell, params![sale.seat, token, sale.buyer])?;
        Ok((rows == 1).then_some(()))
    })
}
