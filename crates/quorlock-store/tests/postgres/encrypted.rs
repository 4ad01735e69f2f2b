//! Connections under TLS.

use std::sync::Arc;

use quorlock_store::{Cause, PostgresStore, Store};
use quorlock_testbed::certificates::{Authority, Validity};
use quorlock_testbed::postgres::Postgres;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::databases::{bare, check, patient};

/// Returns the store of a server under TLS, for a client that trusts an authority.
fn trusting(server: &Postgres, authority: &Authority) -> PostgresStore {
    let tls = MakeRustlsConnect::new((*authority.client_config()).clone());
    let address = format!("{}?sslmode=require", server.address());
    PostgresStore::with_tls(&address, tls).unwrap()
}

pub(crate) async fn a_server_under_tls_is_reached_by_the_connector_of_the_driver(server: Postgres) {
    drop(server);
    let authority = Authority::new();
    let certificate = authority.sign(&["127.0.0.1"], Validity::Now);
    let server = Postgres::encrypted(&certificate.certificate, &certificate.key);
    let store = Arc::new(trusting(&server, &authority));
    store.set_up().await.unwrap();
    let holding = patient(store.clone());
    let guard = holding.lock("a").acquire().await.unwrap();
    // The connection of wake-ups is under TLS, too.
    let waiting = patient(Arc::new(trusting(&server, &authority)));
    let waiter = tokio::spawn(async move { waiting.lock("a").acquire().await.unwrap() });
    guard.release().await.unwrap();
    waiter.await.unwrap().release().await.unwrap();
    let error = check(&trusting(&server, &Authority::new())).await;
    assert_eq!(error.unwrap_err().cause, Cause::Tls);
    let error = check(&*bare(&server)).await.unwrap_err();
    assert_eq!(error.cause, Cause::NoAuth, "{error:?}");
    assert!(error.to_string().contains("encryption"), "{error}");
}
