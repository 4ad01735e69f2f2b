//! Explains why a connection could not be encrypted, and what to do.

use std::io;

use tokio_rustls::rustls::{AlertDescription, CertificateError, Error, InvalidMessage};

/// Explains an error of the handshake. `name` is the host name that was requested, `note` is appended.
pub(super) fn of_handshake(error: &io::Error, name: &str, note: &Option<String>) -> String {
    let words = match cause(error) {
        Some(error) => words(error, name),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            "the server closed the connection instead of answering TLS: is this its TLS port, and has it fewer clients than its maxclients?"
                .into()
        }
        None => format!("the connection ended during the TLS handshake: {error}"),
    };
    noted(words, note)
}

/// Explains an error before the server's first answer, if TLS is the reason. The server checks a client's certificate
/// after the client has finished its part of the handshake.
pub(super) fn of_first_answer(
    error: &io::Error,
    name: &str,
    note: &Option<String>,
) -> Option<String> {
    let error = cause(error)?;
    Some(noted(words(error, name), note))
}

fn cause(error: &io::Error) -> Option<&Error> {
    error.get_ref()?.downcast_ref()
}

fn noted(words: String, note: &Option<String>) -> String {
    match note {
        Some(note) => format!("{words} (the previous files are used: {note})"),
        None => words,
    }
}

fn words(error: &Error, name: &str) -> String {
    match error {
        Error::InvalidCertificate(error) => of_certificate(error, name),
        Error::InvalidMessage(InvalidMessage::InvalidContentType)
        | Error::InvalidMessage(InvalidMessage::UnknownProtocolVersion) => {
            "the answer is not TLS: give the server's TLS port, or write redis:// for a port without TLS".into()
        }
        Error::AlertReceived(alert) => of_alert(*alert),
        Error::PeerIncompatible(_) => {
            format!("the server and the client have no version or cipher of TLS in common: {error}")
        }
        error => format!("TLS failed: {error}"),
    }
}

fn of_certificate(error: &CertificateError, name: &str) -> String {
    use CertificateError as E;
    match error {
        E::Expired | E::ExpiredContext { .. } => {
            "the certificate of the server has expired: renew it (or set the clock of this machine)".into()
        }
        E::NotValidYet | E::NotValidYetContext { .. } => {
            "the certificate of the server is not valid yet: set the clock of this machine, or of the one that made it".into()
        }
        E::UnknownIssuer => {
            "the certificate of the server is not signed by a trusted authority: name its authority by Tls::roots_file (--tls-ca)".into()
        }
        E::NotValidForName | E::NotValidForNameContext { .. } => {
            format!(
                "the certificate of the server is not for {name}: use a name in the address that it has, or set Tls::server_name"
            )
        }
        E::Revoked => "the certificate of the server is revoked: give it another one".into(),
        error => format!("the certificate of the server is refused: {error}"),
    }
}

fn of_alert(alert: AlertDescription) -> String {
    use AlertDescription as A;
    match alert {
        A::CertificateRequired | A::HandshakeFailure => {
            "the server requires a client certificate: give one by Tls::client_certificate_files (--tls-cert, --tls-key)".into()
        }
        A::UnknownCA => {
            "the server does not trust the authority of the client's certificate: give one that its tls-ca-cert-file has signed".into()
        }
        A::CertificateExpired => "the certificate of the client has expired: renew it".into(),
        A::BadCertificate | A::UnsupportedCertificate | A::CertificateUnknown | A::AccessDenied => {
            format!("the server refuses the certificate of the client ({alert:?}): give another one")
        }
        A::CertificateRevoked => "the certificate of the client is revoked: give another one".into(),
        A::ProtocolVersion => {
            "the server and the client have no TLS version in common: the client has 1.2 and 1.3".into()
        }
        A::UnrecognisedName => {
            "the server does not know the name that it was asked for: set Tls::server_name".into()
        }
        alert => format!("the server ended TLS: {alert:?}"),
    }
}
