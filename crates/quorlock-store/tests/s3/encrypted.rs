//! Connections under TLS.

use std::path::{Path, PathBuf};

use quorlock::Locks;
use quorlock_store::Cause;
use quorlock_testbed::certificates::{Authority, Files, Validity};
use quorlock_testbed::s3::S3;

use crate::databases::{problem, refused};

/// What names the folder with the certificates.
const FOLDER: &str = "QUORLOCK_CERTIFICATES";

/// Makes an authority, and a certificate that it has signed, in a folder. Returns the variables of a program that trusts this authority.
pub(crate) fn prepare(folder: &Path) -> [(&'static str, PathBuf); 2] {
    let authority = Authority::new();
    sign(&authority, folder, "server");
    [
        ("SSL_CERT_FILE", authority.write(folder)),
        (FOLDER, folder.to_owned()),
    ]
}

fn sign(authority: &Authority, folder: &Path, stem: &str) -> Files {
    let certificate = authority.sign(&["127.0.0.1"], Validity::Now);
    certificate.write(folder, stem)
}

pub(crate) async fn a_service_under_tls_is_reached_by_an_authority_of_the_system(_: S3) {
    let folder = PathBuf::from(std::env::var_os(FOLDER).unwrap());
    let [certificate, key] = ["server.pem", "server.key"].map(|name| folder.join(name));
    let server = S3::encrypted(&certificate, &key);
    let locks = Locks::connect(server.address()).await.unwrap();
    let guard = locks.lock("a").acquire().await.unwrap();
    guard.release().await.unwrap();
    let plain = server.address().replace("https://", "http://");
    assert!(Locks::connect(plain).await.is_err());
    let stranger = sign(&Authority::new(), &folder, "stranger");
    let stranger = S3::encrypted(&stranger.certificate, &stranger.key);
    let (cause, said) = problem(refused(&stranger.address()).await);
    assert_eq!(cause, Cause::Tls, "{said}");
}
