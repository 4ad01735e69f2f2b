//! A till: sells seats over HTTP.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use quorlock::Locks;
use serde::{Deserialize, Serialize};

use crate::http::{CallError, Dial, post as send};
use crate::ledger::{Look, Sale};

/// How long a buyer waits for others who want the same seat.
const PATIENCE: Duration = Duration::from_secs(2);

/// A till, and how it reaches the ledger and the bank.
#[derive(Clone, Debug)]
pub struct Till<D> {
    /// The locks, one for each seat.
    pub locks: Locks,
    /// The network.
    pub dial: D,
}

/// What a buyer asks for.
#[derive(Debug, Serialize, Deserialize)]
pub struct Order {
    /// The number of the seat.
    pub seat: u32,
    /// The name of the buyer.
    pub buyer: String,
}

impl<D: Dial> Till<D> {
    /// Returns the service: `POST /orders`. 200 is a receipt: the seat is the buyer's. 409: it has another buyer.
    pub fn service(self) -> Router {
        Router::new()
            .route("/orders", post(order::<D>))
            .with_state(self)
    }

    async fn sell(&self, order: Order) -> Result<(), StatusCode> {
        let Order { seat, buyer } = order;
        let lock = self.locks.lock(format!("seat/{seat}")).wait(PATIENCE);
        let guard = lock.acquire().await.map_err(|error| {
            let status = StatusCode::from_u16(error.kind().to_http_status());
            status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
        })?;
        let token = guard.fencing_token().0;
        let has = self.post("ledger", "/look", &Look { seat, token }).await?;
        if has != "null" {
            return Err(StatusCode::CONFLICT);
        }
        self.post("bank", "/charges", &buyer).await?;
        let sale = Sale { seat, token, buyer };
        self.post("ledger", "/sell", &sale).await?;
        Ok(())
    }

    /// Returns the text of an answer; any status but 200 is an error.
    async fn post(
        &self,
        service: &str,
        path: &str,
        body: &impl Serialize,
    ) -> Result<String, StatusCode> {
        match send(&self.dial, service, path, body).await {
            Ok((StatusCode::OK, text)) => Ok(text),
            Ok((status, _)) => Err(status),
            Err(CallError::TimedOut) => Err(StatusCode::GATEWAY_TIMEOUT),
            Err(_) => Err(StatusCode::BAD_GATEWAY),
        }
    }
}

async fn order<D: Dial>(
    State(till): State<Till<D>>,
    Json(order): Json<Order>,
) -> Result<(), StatusCode> {
    till.sell(order).await
}
