//! Connections under TLS.

use etcd_client::{Certificate, ConnectOptions, TlsOptions};
use quorlock_store::{Cause, EtcdStore};
use quorlock_testbed::certificates::{Authority, Validity};
use quorlock_testbed::etcd::Etcd;

use crate::databases::{bare, check, patient};

/// Returns the store of a server under TLS, for a client that trusts an authority.
fn trusting(server: &Etcd, authority: &Authority) -> EtcdStore {
    let authority = Certificate::from_pem(authority.pem());
    let tls = TlsOptions::new().ca_certificate(authority);
    let options = ConnectOptions::new().with_tls(tls);
    EtcdStore::with_options(&server.address(), options).unwrap()
}

pub(crate) async fn a_server_under_tls_is_reached_by_the_options_of_the_driver(server: Etcd) {
    drop(server);
    let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new());
    let certificate = authority.sign(&["127.0.0.1"], Validity::Now);
    let files = certificate.write(folder.path(), "server");
    let server = Etcd::encrypted(&files.certificate, &files.key);
    let store = trusting(&server, &authority);
    let locks = patient(std::sync::Arc::new(store));
    let guard = locks.lock("a").acquire().await.unwrap();
    guard.release().await.unwrap();
    let error = check(&trusting(&server, &Authority::new())).await;
    let error = error.unwrap_err();
    assert_eq!(error.cause, Cause::Tls, "{error:?}");
    let error = check(&*bare(&server)).await.unwrap_err();
    assert!(error.to_string().contains("TLS"), "{error}");
}
