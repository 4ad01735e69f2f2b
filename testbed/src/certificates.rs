//! Certificates for the tests: an authority, and certificates that it signs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// A certificate authority of one test.
#[derive(Debug)]
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// The validity of a certificate.
#[derive(Clone, Copy, Debug)]
pub enum Validity {
    /// Valid now.
    Now,
    /// Expired years ago.
    Over,
    /// Valid only in the far future.
    NotYet,
}

/// A certificate and its key, in PEM.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The certificate, in PEM.
    pub certificate: String,
    /// Its private key, in PEM.
    pub key: String,
}

/// The files of a certificate and its key.
#[derive(Clone, Debug)]
pub struct Files {
    /// Path of the certificate.
    pub certificate: PathBuf,
    /// Path of its private key.
    pub key: PathBuf,
}

impl Authority {
    /// Creates an authority with a new key.
    ///
    /// # Panics
    /// Panics if no key can be made.
    #[must_use]
    pub fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        // OpenSSL treats a certificate whose subject equals its issuer as self-signed.
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("Authority {number} of a test");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("a self-signed certificate");
        Authority { issuer }
    }

    /// Returns the certificate of the authority, in PEM.
    #[must_use]
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// Returns a configuration of the `rustls` crate that trusts this authority.
    ///
    /// # Panics
    /// Panics if the configuration cannot be created.
    #[must_use]
    pub fn client_config(&self) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        let own = CertificateDer::from_pem_slice(self.pem().as_bytes()).expect("PEM");
        roots.add(own).expect("an authority");
        let config = ClientConfig::builder().with_root_certificates(roots);
        Arc::new(config.with_no_client_auth())
    }

    /// Writes the certificate of the authority to a file. Returns the path.
    ///
    /// # Panics
    /// Panics if the file cannot be written.
    #[must_use]
    pub fn write(&self, folder: &Path) -> PathBuf {
        let path = folder.join("ca.pem");
        std::fs::write(&path, self.pem()).expect("a folder to write to");
        path
    }

    /// Signs a certificate for these names and IP addresses.
    ///
    /// # Panics
    /// Panics if a name cannot be in a certificate.
    #[must_use]
    pub fn sign(&self, names: &[&str], validity: Validity) -> Certificate {
        let subject = names.first().copied().unwrap_or_default();
        let names: Vec<String> = names.iter().copied().map(String::from).collect();
        let mut params = CertificateParams::new(names).expect("names for a certificate");
        params.distinguished_name.push(DnType::CommonName, subject);
        let (from, until) = match validity {
            Validity::Now => (2000, 3000),
            Validity::Over => (2000, 2001),
            Validity::NotYet => (3000, 3001),
        };
        params.not_before = date_time_ymd(from, 1, 1);
        params.not_after = date_time_ymd(until, 1, 1);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("it signs");
        Certificate {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }
}

impl Default for Authority {
    fn default() -> Self {
        Authority::new()
    }
}

impl Certificate {
    /// Writes the certificate and the key to files with this stem. Returns the paths.
    ///
    /// # Panics
    /// Panics if they cannot be written.
    #[must_use]
    pub fn write(&self, folder: &Path, stem: &str) -> Files {
        let files = Files {
            certificate: folder.join(format!("{stem}.pem")),
            key: folder.join(format!("{stem}.key")),
        };
        std::fs::write(&files.certificate, &self.certificate).expect("a folder to write to");
        std::fs::write(&files.key, &self.key).expect("a folder to write to");
        files
    }
}
