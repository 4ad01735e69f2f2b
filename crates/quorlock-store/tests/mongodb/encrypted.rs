//! Connections under TLS.

use std::path::Path;

use quorlock::Locks;
use quorlock_store::Cause;
use quorlock_testbed::certificates::{Authority, Validity};
use quorlock_testbed::mongodb::Mongodb;

use crate::databases::problem;

/// Returns an address that trusts the authority in a file.
fn trusting(server: &Mongodb, authority: &Path) -> String {
    let file = authority.display().to_string().replace('/', "%2F");
    format!("{}?tls=true&tlsCAFile={file}", server.address())
}

pub(crate) async fn a_server_under_tls_is_reached_by_an_authority_of_its_own(_: Mongodb) {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [own, other] = folders.each_ref().map(|folder| {
        let authority = Authority::new();
        (authority.write(folder.path()), authority)
    });
    let certificate = own.1.sign(&["127.0.0.1"], Validity::Now);
    let files = certificate.write(folders[0].path(), "server");
    let server = Mongodb::encrypted(&files.certificate, &files.key);
    let locks = Locks::connect(trusting(&server, &own.0)).await.unwrap();
    let guard = locks.lock("a").acquire().await.unwrap();
    guard.release().await.unwrap();
    let without = folders[0].path().join("missing");
    for (address, cause) in [
        (trusting(&server, &other.0), Cause::Tls),
        (format!("{}?tls=true", server.address()), Cause::Tls),
        (trusting(&server, &without), Cause::Tls),
        (server.address(), Cause::Unreachable),
    ] {
        let error = Locks::connect(&address).await.unwrap_err();
        let (found, said) = problem(error);
        assert_eq!(found, cause, "{address}: {said}");
    }
}
