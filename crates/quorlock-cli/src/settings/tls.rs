//! The options of connections that use TLS.

use std::path::PathBuf;

use clap::Args;
use quorlock::redis::RedisConfig;

use super::{File, variable};
use crate::failure::Failure;

/// Certificates for addresses that use TLS. The files are read again for each connection.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct TlsOptions {
    /// PEM file with the certificate authorities to trust, instead of those of the system, for addresses that begin
    /// with rediss://. Default: QUORLOCK_TLS_CA.
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<PathBuf>,
    /// PEM file with the client certificate, for mutual TLS. Requires --tls-key. Default: QUORLOCK_TLS_CERT.
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// PEM file with the private key of the certificate in --tls-cert. Default: QUORLOCK_TLS_KEY.
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// Name in the certificates of the servers, if it is not that of their addresses: for a tunnel, or an IP address.
    /// Default: QUORLOCK_TLS_SERVER_NAME.
    #[arg(long, value_name = "NAME")]
    tls_server_name: Option<String>,
    /// The same as --tls-ca for the sentinels of rediss+sentinel://, if it is another. Default: that of the servers, or
    /// QUORLOCK_SENTINEL_TLS_CA.
    #[arg(long, value_name = "FILE")]
    sentinel_tls_ca: Option<PathBuf>,
    /// The same as --tls-cert for the sentinels. Default: QUORLOCK_SENTINEL_TLS_CERT.
    #[arg(long, value_name = "FILE")]
    sentinel_tls_cert: Option<PathBuf>,
    /// The same as --tls-key for the sentinels. Default: QUORLOCK_SENTINEL_TLS_KEY.
    #[arg(long, value_name = "FILE")]
    sentinel_tls_key: Option<PathBuf>,
}

impl TlsOptions {
    /// Returns these options, or those of the environment, or those of the settings file, in this order.
    pub(super) fn or(&self, file: &File) -> Result<TlsOptions, Failure> {
        let pick = |given: &Option<PathBuf>, name: &str, file: &Option<PathBuf>| {
            let given = given.clone().or_else(|| variable(name).map(PathBuf::from));
            given.or_else(|| file.clone())
        };
        let name = self.tls_server_name.clone();
        let name = name.or_else(|| variable("QUORLOCK_TLS_SERVER_NAME"));
        let options = TlsOptions {
            tls_ca: pick(&self.tls_ca, "QUORLOCK_TLS_CA", &file.tls_ca),
            tls_cert: pick(&self.tls_cert, "QUORLOCK_TLS_CERT", &file.tls_cert),
            tls_key: pick(&self.tls_key, "QUORLOCK_TLS_KEY", &file.tls_key),
            tls_server_name: name.or_else(|| file.tls_server_name.clone()),
            sentinel_tls_ca: pick(
                &self.sentinel_tls_ca,
                "QUORLOCK_SENTINEL_TLS_CA",
                &file.sentinel_tls_ca,
            ),
            sentinel_tls_cert: pick(
                &self.sentinel_tls_cert,
                "QUORLOCK_SENTINEL_TLS_CERT",
                &file.sentinel_tls_cert,
            ),
            sentinel_tls_key: pick(
                &self.sentinel_tls_key,
                "QUORLOCK_SENTINEL_TLS_KEY",
                &file.sentinel_tls_key,
            ),
        };
        for (prefix, certificate, key) in [
            ("--tls", &options.tls_cert, &options.tls_key),
            (
                "--sentinel-tls",
                &options.sentinel_tls_cert,
                &options.sentinel_tls_key,
            ),
        ] {
            match (certificate, key) {
                (Some(_), None) => {
                    let text = format!("{prefix}-cert needs its key: give {prefix}-key");
                    return Err(Failure::config(text));
                }
                (None, Some(_)) => {
                    let text = format!("{prefix}-key needs its certificate: give {prefix}-cert");
                    return Err(Failure::config(text));
                }
                _ => {}
            }
        }
        Ok(options)
    }

    pub(super) fn is_empty(&self) -> bool {
        let has_own =
            self.tls_ca.is_some() || self.tls_cert.is_some() || self.tls_server_name.is_some();
        !has_own && !self.has_sentinels()
    }

    fn has_sentinels(&self) -> bool {
        self.sentinel_tls_ca.is_some() || self.sentinel_tls_cert.is_some()
    }

    /// Returns the connection settings with these options.
    #[cfg(feature = "tls")]
    pub(super) fn apply(&self, config: RedisConfig) -> Result<RedisConfig, Failure> {
        if self.is_empty() {
            return Ok(config);
        }
        let of = |ca: &Option<PathBuf>, certificate: &Option<PathBuf>, key: &Option<PathBuf>| {
            let mut tls = quorlock::redis::Tls::new();
            if let Some(ca) = ca {
                tls = tls.roots_file(ca);
            }
            match (certificate, key) {
                (Some(certificate), Some(key)) => tls.client_certificate_files(certificate, key),
                _ => tls,
            }
        };
        let mut tls = of(&self.tls_ca, &self.tls_cert, &self.tls_key);
        if let Some(name) = &self.tls_server_name {
            tls = tls.server_name(name);
        }
        let config = config.tls(tls);
        if !self.has_sentinels() {
            return Ok(config);
        }
        Ok(config.sentinel_tls(of(
            &self.sentinel_tls_ca,
            &self.sentinel_tls_cert,
            &self.sentinel_tls_key,
        )))
    }

    /// Returns the connection settings with these options.
    #[cfg(not(feature = "tls"))]
    pub(super) fn apply(&self, config: RedisConfig) -> Result<RedisConfig, Failure> {
        if self.is_empty() {
            return Ok(config);
        }
        Err(Failure::config(
            "this quorlock was built without TLS: build it with the cargo feature `tls`",
        ))
    }
}
