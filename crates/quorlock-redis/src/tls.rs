//! TLS to a server: which authorities to trust, and the client's own certificate.

mod danger;
mod explained;
mod material;
mod overheard;
mod stream;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use quorlock_core::transport::TransportError;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use self::material::{Built, Identity, Pem, Verification};
use self::overheard::{FirstBytes, Overheard};
use self::stream::Secured;
use crate::connect::{ByteStream, Endpoint};
use crate::error;
use crate::sync::{Mutex, MutexGuard};
use crate::timer::{self, Instant};

/// How to connect to an address that asks for TLS (`rediss://`, `valkeys://`).
///
/// By default, it trusts the authorities of the operating system (or those of the variables `SSL_CERT_FILE` and
/// `SSL_CERT_DIR`), requires a certificate for the host of the address, and presents no client certificate. It supports
/// TLS 1.2 and 1.3.
///
/// Files are read again at each connection attempt, so a replaced certificate is used from the next connection on. If a
/// file cannot be read, or a certificate and its key do not match yet, the previous content is used.
///
/// The cryptography is that of the process, if one was installed before the first connection
/// (`rustls::crypto::CryptoProvider::install_default`). Otherwise it is that of the crate `ring`.
///
/// ```
/// use quorlock_redis::{RedisConfig, Tls};
///
/// let tls = Tls::new()
///     .roots_file("/etc/redis/ca.pem")
///     .client_certificate_files("/etc/redis/client.pem", "/etc/redis/client.key");
/// let config = RedisConfig::default().tls(tls);
/// ```
#[derive(Clone)]
#[must_use]
pub struct Tls {
    source: TlsSource,
    server_name: Option<String>,
}

/// The source of the TLS configuration.
#[derive(Clone)]
enum TlsSource {
    /// Built from certificates, and built again when they have changed.
    Certificates(Arc<Certificates>),
    /// A complete configuration from the user.
    Whole(Arc<ClientConfig>),
}

/// The user's settings, and the configuration built from them.
#[derive(Default)]
struct Certificates {
    roots: Vec<Pem>,
    identity: Option<Identity>,
    verification: Verification,
    built: Mutex<Option<Built>>,
}

impl Default for Tls {
    fn default() -> Self {
        Tls::new()
    }
}

impl Tls {
    /// Trusts the authorities of the operating system.
    pub fn new() -> Self {
        Tls {
            source: TlsSource::Certificates(Arc::default()),
            server_name: None,
        }
    }

    /// Uses a complete configuration of the `rustls` crate, in the version of
    /// [`RustlsClientConfig`](crate::RustlsClientConfig). Its certificates are not read again, unless its
    /// resolvers and verifiers do so. A later call that sets certificates replaces this configuration.
    pub fn from_rustls(config: Arc<ClientConfig>) -> Self {
        Tls {
            source: TlsSource::Whole(config),
            server_name: None,
        }
    }

    /// Trusts the authorities in this PEM file instead of those of the system. Further calls add authorities.
    pub fn roots_file(self, path: impl Into<PathBuf>) -> Self {
        let pem = Pem::File(path.into());
        self.change(|certificates| certificates.roots.push(pem))
    }

    /// Trusts these authorities, in PEM, instead of those of the system. Further calls add authorities.
    pub fn roots_pem(self, pem: impl Into<Vec<u8>>) -> Self {
        let pem = Pem::Bytes(pem.into());
        self.change(|certificates| certificates.roots.push(pem))
    }

    /// Presents this certificate to the server (with the intermediate ones, if there are any). The other file has its
    /// private key. Both are PEM; the key is PKCS#8, PKCS#1 or SEC1, and not encrypted.
    pub fn client_certificate_files(
        self,
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Self {
        let identity = Identity {
            certificate: Pem::File(certificate.into()),
            key: Pem::File(key.into()),
        };
        self.change(|certificates| certificates.identity = Some(identity))
    }

    /// Like [`Tls::client_certificate_files`], with the PEM itself.
    pub fn client_certificate_pem(
        self,
        certificate: impl Into<Vec<u8>>,
        key: impl Into<Vec<u8>>,
    ) -> Self {
        let identity = Identity {
            certificate: Pem::Bytes(certificate.into()),
            key: Pem::Bytes(key.into()),
        };
        self.change(|certificates| certificates.identity = Some(identity))
    }

    /// Requires a certificate for this name (or IP address), and requests it (SNI), instead of one for the host of the
    /// address. Use it for a server that is reached by another name, through a tunnel or by its IP address.
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.server_name = Some(name.into());
        self
    }

    /// Trusts **every** server, whatever certificate it presents. Anyone who can redirect packets can then read the
    /// password and grant locks. Use it for test servers only.
    pub fn dangerously_accept_any_certificate(self) -> Self {
        self.change(|certificates| certificates.verification = Verification::None)
    }

    /// Changes the settings, and drops the configuration that was built from the previous ones.
    fn change(self, change: impl FnOnce(&mut Certificates)) -> Self {
        let mut certificates = match &self.source {
            TlsSource::Certificates(before) => Certificates {
                roots: before.roots.clone(),
                identity: before.identity.clone(),
                verification: before.verification,
                built: Mutex::new(None),
            },
            TlsSource::Whole(_) => Certificates::default(),
        };
        change(&mut certificates);
        Tls {
            source: TlsSource::Certificates(Arc::new(certificates)),
            server_name: self.server_name,
        }
    }

    /// Encrypts a stream. The handshake ends a little before the deadline, so that its own error is reported.
    pub(crate) async fn wrap(
        &self,
        stream: Box<dyn ByteStream>,
        to: &Endpoint,
        deadline: Instant,
    ) -> Result<Box<dyn ByteStream>, TransportError> {
        let name = self.name_of(to)?;
        let (connector, note) = self.connector().await?;
        let shown = name.to_str().into_owned();
        // The caller has the same deadline, and would report only that there is no connection.
        let patience = deadline.saturating_duration_since(timer::now());
        let first = FirstBytes::default();
        let stream: Box<dyn ByteStream> = Box::new(Overheard::new(stream, first.clone()));
        let handshake = connector.connect(name, stream);
        let refused = match timer::by(deadline - patience / 16, handshake).await {
            Some(Ok(stream)) => return Ok(Box::new(Secured::new(stream, shown, note))),
            Some(Err(error)) => error::not_secured(&explained::of_handshake(&error, &shown, &note)),
            None => error::no_tls_handshake(),
        };
        // A server that turns a client away says so before any handshake, and without encryption.
        Err(first
            .farewell()
            .map_or(refused, |words| error::turned_away_unencrypted(&words)))
    }

    fn name_of(&self, to: &Endpoint) -> Result<ServerName<'static>, TransportError> {
        let host = match (&self.server_name, to) {
            (Some(name), _) => name.as_str(),
            (None, Endpoint::Tcp { host, .. }) => host.as_str(),
            (None, Endpoint::Unix { .. }) => "localhost",
        };
        // A fully qualified name may end with a dot, but the names in certificates never do.
        let name = host.strip_suffix('.').unwrap_or(host).to_owned();
        ServerName::try_from(name).map_err(|_| {
            error::not_secured(&format!(
                "{host:?} cannot be a name in a certificate: set Tls::server_name"
            ))
        })
    }

    /// Returns a connector, and a note for the error message if the connection fails.
    async fn connector(&self) -> Result<(TlsConnector, Option<String>), TransportError> {
        let certificates = match &self.source {
            TlsSource::Whole(config) => return Ok((TlsConnector::from(Arc::clone(config)), None)),
            TlsSource::Certificates(certificates) => certificates,
        };
        let before = certificates.lock().clone();
        if let Some(built) = &before
            && !certificates.are_in_files()
        {
            return Ok((built.connector(), None));
        }
        let reader = Arc::clone(certificates);
        let read =
            timer::blocking(move || reader.read(before.as_ref()).map_err(|why| (why, before)));
        match read.await {
            Some(Ok(built)) => {
                let connector = built.connector();
                *certificates.lock() = Some(built);
                Ok((connector, None))
            }
            Some(Err((why, Some(before)))) => Ok((before.connector(), Some(why))),
            Some(Err((why, None))) => Err(error::not_secured(&why)),
            None => Err(error::unreachable("the runtime was shut down")),
        }
    }
}

impl Certificates {
    fn lock(&self) -> MutexGuard<'_, Option<Built>> {
        self.built.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn are_in_files(&self) -> bool {
        let identity = self.identity.iter();
        let identity = identity.flat_map(|identity| [&identity.certificate, &identity.key]);
        self.roots.iter().chain(identity).any(Pem::is_file)
    }

    /// Reads the files. Returns `before` if nothing has changed.
    fn read(&self, before: Option<&Built>) -> Result<Built, String> {
        Built::of(
            &self.roots,
            self.identity.as_ref(),
            self.verification,
            before,
        )
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Tls");
        match &self.source {
            TlsSource::Whole(_) => shown.field("config", &"rustls"),
            TlsSource::Certificates(certificates) => shown
                .field("roots", &certificates.roots)
                .field("identity", &certificates.identity)
                .field("verification", &certificates.verification),
        };
        shown.field("server_name", &self.server_name).finish()
    }
}
