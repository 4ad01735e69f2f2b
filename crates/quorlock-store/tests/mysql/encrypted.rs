//! Connections under TLS.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mysql_async::{ClientIdentity, Opts, OptsBuilder, SslOpts};
use quorlock_store::{Cause, MysqlStore, Store};
use quorlock_testbed::certificates::{Authority, Validity};
use quorlock_testbed::mysql::Mysql;

use crate::databases::{bare, check, patient};

/// Returns what makes a client trust the authority of a file, and no other.
fn trusting(authority: &Path) -> SslOpts {
    let file = PathBuf::from(authority).into();
    let tls = SslOpts::default().with_disable_built_in_roots(true);
    tls.with_root_certs(vec![file])
}

fn store(server: &Mysql, tls: SslOpts) -> MysqlStore {
    let options = OptsBuilder::from_opts(Opts::from_url(&server.address()).unwrap());
    MysqlStore::with_options(options.prefer_socket(false).ssl_opts(tls))
}

pub(crate) async fn a_server_under_tls_is_reached_by_the_options_of_the_driver(server: Mysql) {
    drop(server);
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let [own, other] = folders.each_ref().map(|folder| {
        let authority = Authority::new();
        (authority.write(folder.path()), authority)
    });
    let signed = |name| {
        let certificate = own.1.sign(&["127.0.0.1"], Validity::Now);
        certificate.write(folders[0].path(), name)
    };
    let (files, client) = (signed("server"), signed("client"));
    let server = Mysql::encrypted(&files.certificate, &files.key, &own.0);
    let trusted = Arc::new(store(&server, trusting(&own.0)));
    trusted.set_up().await.unwrap();
    let locks = patient(trusted);
    let guard = locks.lock("a").acquire().await.unwrap();
    guard.release().await.unwrap();
    let error = check(&store(&server, trusting(&other.0))).await;
    let error = error.unwrap_err();
    assert_eq!(error.cause, Cause::Tls, "{error:?}");
    assert!(error.to_string().contains("certificate"), "{error}");
    // MariaDB says no more than that it accepts no such user.
    let error = check(&*bare(&server)).await.unwrap_err();
    assert_eq!(error.cause, Cause::NoAuth, "{error:?}");
    assert!(error.to_string().contains("TLS"), "{error}");
    // A user that must show a certificate.
    server.execute("ALTER USER locks@'127.0.0.1' REQUIRE X509");
    let error = check(&store(&server, trusting(&own.0))).await;
    assert_eq!(error.unwrap_err().cause, Cause::NoAuth);
    let identity = ClientIdentity::new(client.certificate.into(), client.key.into());
    let tls = trusting(&own.0).with_client_identity(Some(identity));
    check(&store(&server, tls)).await.unwrap();
}
