//! A server with a certificate, and clients of it.

use std::path::Path;
use std::time::Duration;

use quorlock::redis::{RedisConfig, Tls};
use quorlock::{Locks, LocksBuilder};
use quorlock_testbed::certificates::{Authority, Files, Validity};
use quorlock_testbed::server::Server;
use quorlock_tests::clients::settings;
use tempfile::TempDir;

/// A password that is in the addresses, and must not be in any error.
pub(super) const SECRET: &str = "hunter2-s3cret";

/// The clients that the server accepts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Clients {
    /// All clients.
    Any,
    /// Clients with a certificate of the server's authority.
    Certified,
}

/// A server with a certificate.
pub(super) struct Bench {
    pub(super) authority: Authority,
    pub(super) folder: TempDir,
    pub(super) server: Server,
}

impl Bench {
    pub(super) fn start(clients: Clients) -> Bench {
        Bench::with(clients, &["localhost", "127.0.0.1"], Validity::Now)
    }

    pub(super) fn with(clients: Clients, names: &[&str], validity: Validity) -> Bench {
        let authority = Authority::new();
        let folder = tempfile::tempdir().unwrap();
        let ca = authority.write(folder.path());
        let files = authority
            .sign(names, validity)
            .write(folder.path(), "server");
        let server = serve(&ca, &files, clients);
        Bench {
            authority,
            folder,
            server,
        }
    }

    /// Returns the address of the server, under TLS.
    pub(super) fn address(&self, host: &str) -> String {
        format!("rediss://:{SECRET}@{host}:{}/", self.server.tls_port())
    }

    pub(super) fn roots(&self) -> Tls {
        Tls::new().roots_file(self.folder.path().join("ca.pem"))
    }

    pub(super) fn client_files(&self, validity: Validity) -> Files {
        let certificate = self.authority.sign(&["client"], validity);
        certificate.write(self.folder.path(), "client")
    }

    pub(super) async fn locks(&self, tls: Tls) -> Locks {
        let connected = with(tls).connect(self.address("localhost")).await;
        connected.expect("the server can be used")
    }
}

fn serve(ca: &Path, files: &Files, clients: Clients) -> Server {
    let path = |path: &Path| path.display().to_string();
    let asks = match clients {
        Clients::Any => "no",
        Clients::Certified => "yes",
    };
    let server = Server::start_encrypted(&[
        "--tls-ca-cert-file",
        &path(ca),
        "--tls-cert-file",
        &path(&files.certificate),
        "--tls-key-file",
        &path(&files.key),
        "--tls-auth-clients",
        asks,
    ]);
    // The test's own connection stays logged in.
    server.command::<()>(&["CONFIG", "SET", "requirepass", SECRET]);
    server
}

pub(super) fn redis() -> RedisConfig {
    RedisConfig::default()
        .connect_timeout(Duration::from_secs(2))
        .call_timeout(Duration::from_secs(2))
        .ping_interval(Duration::from_millis(200))
}

pub(super) fn with(tls: Tls) -> LocksBuilder {
    settings().redis(redis().tls(tls))
}

pub(super) async fn take_and_release(locks: &Locks) {
    let guard = locks.lock("a").acquire().await.unwrap();
    guard.release().await.unwrap();
}
