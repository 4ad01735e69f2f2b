//! Certificates and keys, and the configuration that is built from them.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, ConfigBuilder, Error, RootCertStore};
use tokio_rustls::rustls::{WantsVerifier, client::WantsClientCert};

use super::danger::Credulous;

/// PEM in a file or in memory.
#[derive(Clone)]
pub(super) enum Pem {
    File(PathBuf),
    Bytes(Vec<u8>),
}

impl Pem {
    pub(super) fn is_file(&self) -> bool {
        matches!(self, Pem::File(_))
    }

    fn read(&self) -> Result<Vec<u8>, String> {
        match self {
            Pem::File(path) => {
                std::fs::read(path).map_err(|error| format!("{self} cannot be read: {error}"))
            }
            Pem::Bytes(bytes) => Ok(bytes.clone()),
        }
    }
}

impl fmt::Display for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pem::File(path) => fmt::Display::fmt(&path.display(), f),
            Pem::Bytes(_) => f.write_str("the PEM given"),
        }
    }
}

impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The client's certificate and its key.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    pub(super) certificate: Pem,
    pub(super) key: Pem,
}

/// Whether the server's certificate is verified.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Verification {
    #[default]
    Full,
    None,
}

/// The contents of all files.
#[derive(PartialEq, Eq)]
struct Contents {
    roots: Vec<Vec<u8>>,
    certificate: Option<Vec<u8>>,
    key: Option<Vec<u8>>,
}

/// A configuration, and the contents that it was built from.
#[derive(Clone)]
pub(super) struct Built {
    contents: Arc<Contents>,
    connector: TlsConnector,
}

impl Built {
    pub(super) fn connector(&self) -> TlsConnector {
        self.connector.clone()
    }

    /// Builds a configuration. Returns `before` if the contents are the same.
    ///
    /// The contents are compared, not the times of the last change: two writes within the time resolution of a file
    /// system have the same time.
    pub(super) fn of(
        roots: &[Pem],
        identity: Option<&Identity>,
        verification: Verification,
        before: Option<&Built>,
    ) -> Result<Built, String> {
        let contents = Contents {
            roots: roots.iter().map(Pem::read).collect::<Result<_, _>>()?,
            certificate: identity.map(|it| it.certificate.read()).transpose()?,
            key: identity.map(|it| it.key.read()).transpose()?,
        };
        if let Some(before) = before
            && *before.contents == contents
        {
            return Ok(before.clone());
        }
        let provider = provider();
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| {
                format!("the cryptography of this process has no TLS 1.2 or 1.3: {error}")
            })?;
        let builder = verifying(builder, roots, &contents, verification, provider)?;
        let config = match (identity, &contents.certificate, &contents.key) {
            (Some(identity), Some(certificate), Some(key)) => {
                let chain = certificates(certificate, &identity.certificate)?;
                let key = private_key(key, &identity.key)?;
                let config = builder.with_client_auth_cert(chain, key);
                config.map_err(|error| refused_identity(identity, &error))?
            }
            _ => builder.with_no_client_auth(),
        };
        Ok(Built {
            contents: Arc::new(contents),
            connector: TlsConnector::from(Arc::new(config)),
        })
    }
}

/// Returns the cryptography of the process, which is chosen once.
fn provider() -> Arc<CryptoProvider> {
    static CHOSEN: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    let installed = || CryptoProvider::get_default().cloned();
    let chosen =
        CHOSEN.get_or_init(|| installed().unwrap_or_else(|| Arc::new(ring::default_provider())));
    Arc::clone(chosen)
}

fn verifying(
    builder: ConfigBuilder<ClientConfig, WantsVerifier>,
    roots: &[Pem],
    contents: &Contents,
    verification: Verification,
    provider: Arc<CryptoProvider>,
) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, String> {
    if verification == Verification::None {
        let credulous = Arc::new(Credulous(provider));
        let builder = builder.dangerous();
        return Ok(builder.with_custom_certificate_verifier(credulous));
    }
    let mut store = RootCertStore::empty();
    for (pem, bytes) in roots.iter().zip(&contents.roots) {
        for certificate in certificates(bytes, pem)? {
            let added = store.add(certificate);
            added
                .map_err(|error| format!("{pem} has an authority that cannot be used: {error}"))?;
        }
    }
    if roots.is_empty() {
        // Some systems list a few certificates that cannot be parsed, among many that can.
        let system = rustls_native_certs::load_native_certs();
        let (added, _) = store.add_parsable_certificates(system.certs);
        if added == 0 {
            return Err(
                "the operating system has no trusted authorities: give them by Tls::roots_file"
                    .into(),
            );
        }
    }
    Ok(builder.with_root_certificates(store))
}

fn certificates(bytes: &[u8], from: &Pem) -> Result<Vec<CertificateDer<'static>>, String> {
    // The parser's error quotes the input, which may be secret.
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(bytes).collect();
    let all = all.map_err(|_| format!("{from} is not well-formed PEM"))?;
    if all.is_empty() {
        return Err(format!("{from} has no certificate in PEM"));
    }
    Ok(all)
}

fn private_key(bytes: &[u8], from: &Pem) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_slice(bytes).map_err(|_| {
        format!(
            "{from} has no private key in PEM (PKCS#8, PKCS#1 or SEC1; one that is encrypted cannot be used)"
        )
    })
}

fn refused_identity(identity: &Identity, error: &Error) -> String {
    let Identity { certificate, key } = identity;
    match error {
        Error::InconsistentKeys(_) => {
            format!("the key of {key} is not that of the certificate of {certificate}")
        }
        error => format!("the client certificate of {certificate} cannot be used: {error}"),
    }
}
