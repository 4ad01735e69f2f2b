//! What an error of the service or the driver means for a call.

use std::error::Error as _;

use object_store::Error;
use object_store::client::{HttpError, HttpErrorKind};
use quorlock_core::transport::{Cause, TransportError};

use crate::database::{Phase, UNREACHABLE};

const BUCKET: &str = "the service has no such bucket: make it, or correct the address";

const KEYS: &str = "the service does not accept these keys: see AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, for keys that end, \
    AWS_SESSION_TOKEN in the environment, and the clock of this machine";

const RIGHTS: &str = "the keys need s3:GetObject and s3:PutObject on the objects below the prefix and on quorlock.id, and s3:ListBucket \
    on the bucket, without which the service does not tell that an object is missing";

const REGION: &str =
    "the bucket is in another region: add ?region= to the address, or set AWS_REGION";

const STRANGE: &str = "the object is not of this library, or was changed by hand: look at it, and delete it while no client relies on it";

const CONDITIONS: &str = "without conditional writes (If-None-Match and If-Match of PutObject) two clients would hold one name: choose a \
    service that has them";

/// Why a call has failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// The service or the driver has refused the call, or what was sent has got no answer.
    Driver(Error),
    /// There are no keys to sign with.
    NoKeys(Error),
    /// The object with this name is none of this library.
    Strange(String),
    /// The service ignores a condition, whose header this is.
    Ignores(&'static str),
    /// The service does not tell the version of an object.
    NoVersion,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Driver(error)
    }
}

/// What is known of an error.
struct Meaning {
    cause: Cause,
    advice: Option<&'static str>,
    /// Whether the call was not executed.
    is_refused: bool,
}

fn refused(cause: Cause, advice: &'static str) -> Meaning {
    Meaning {
        cause,
        advice: Some(advice),
        is_refused: true,
    }
}

fn open(cause: Cause) -> Meaning {
    Meaning {
        cause,
        advice: None,
        is_refused: false,
    }
}

impl Failure {
    /// Returns whether the service has said that there is no such object.
    pub(super) fn is_missing(&self) -> bool {
        matches!(self, Failure::Driver(error @ Error::NotFound { .. }) if code(&error.to_string()) != Some("NoSuchBucket"))
    }

    /// Returns whether the condition of a write did not hold, or another write was under way.
    pub(super) fn is_conflict(&self) -> bool {
        matches!(
            self,
            Failure::Driver(Error::AlreadyExists { .. } | Error::Precondition { .. })
        )
    }

    /// Returns whether a read may succeed if it is sent again, on another connection.
    pub(super) fn may_pass(&self) -> bool {
        matches!(self, Failure::Driver(error) if kind(error) == Some(HttpErrorKind::Interrupted))
    }

    pub(super) fn into_error(self, phase: Phase) -> TransportError {
        let meaning = self.meaning();
        let advice = match (phase, meaning.cause) {
            (Phase::Connect, Cause::Closed | Cause::Protocol) => Some(UNREACHABLE),
            _ => meaning.advice,
        };
        let what = (meaning.cause, advice);
        phase.error(meaning.is_refused, what, self.to_text())
    }

    fn meaning(&self) -> Meaning {
        let error = match self {
            Failure::NoKeys(_) => return refused(Cause::NoCredentials, KEYS),
            Failure::Strange(_) => return refused(Cause::WrongType, STRANGE),
            Failure::Ignores(_) | Failure::NoVersion => {
                return refused(Cause::Unsupported, CONDITIONS);
            }
            Failure::Driver(error) => error,
        };
        let text = error.to_string();
        if let Some(kind) = kind(error) {
            return match kind {
                HttpErrorKind::Connect if root(error).contains("certificate") => refused(
                    Cause::Tls,
                    "the certificate of the service is not one of an authority that the operating system trusts",
                ),
                HttpErrorKind::Connect => refused(Cause::Unreachable, UNREACHABLE),
                HttpErrorKind::Timeout => open(Cause::TimedOut),
                HttpErrorKind::Decode => open(Cause::Protocol),
                _ => open(Cause::Closed),
            };
        }
        match (code(&text), status(&text)) {
            (Some("NoSuchBucket"), _) => refused(Cause::NoDatabase, BUCKET),
            (
                Some(
                    "InvalidAccessKeyId" | "SignatureDoesNotMatch" | "ExpiredToken" | "InvalidToken"
                    | "RequestTimeTooSkewed" | "UnrecognizedClientException"
                    // That of versitygw.
                    | "XAdminUserNotFound",
                ),
                _,
            )
            | (_, Some(401)) => refused(Cause::NoAuth, KEYS),
            (
                Some(
                    "PermanentRedirect" | "TemporaryRedirect" | "AuthorizationHeaderMalformed"
                    | "IllegalLocationConstraintException",
                ),
                _,
            )
            | (_, Some(300..=399)) => refused(Cause::Misconfigured, REGION),
            (Some("NotImplemented"), _) | (_, Some(405 | 501)) => {
                refused(Cause::Unsupported, CONDITIONS)
            }
            (_, Some(403)) => refused(Cause::NoPermission, RIGHTS),
            (Some("SlowDown"), _) | (_, Some(429 | 503)) => open(Cause::Busy),
            (Some("QuotaExceeded" | "InsufficientStorage"), _) | (_, Some(507)) => {
                open(Cause::OutOfMemory)
            }
            // The service has looked at the request and taken none of it.
            (Some(_), Some(400)) => Meaning {
                is_refused: true,
                ..open(Cause::Server)
            },
            _ => open(Cause::Server),
        }
    }

    fn to_text(&self) -> String {
        match self {
            Failure::NoKeys(error) => root(error),
            Failure::Strange(object) => format!("{object} has no record"),
            Failure::Ignores(header) => format!("it executes a write whose {header} does not hold"),
            Failure::NoVersion => "it does not tell the ETag of an object".to_owned(),
            Failure::Driver(error) => {
                let text = error.to_string();
                match (code(&text), between(&text, "<Message>", "</Message>")) {
                    (Some(code), Some(message)) => format!("{message} ({code})"),
                    (Some(code), None) => code.to_owned(),
                    (None, _) => match status(&text) {
                        Some(status) => format!("the service answers with the status {status}"),
                        None => root(error),
                    },
                }
            }
        }
    }
}

/// Returns what the connection had, where there is no answer.
fn kind(error: &Error) -> Option<HttpErrorKind> {
    let mut source = error.source();
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<HttpError>() {
            return Some(error.kind());
        }
        source = error.source();
    }
    None
}

/// Returns what the first of all errors has said. Those above it repeat it, with the whole request.
fn root(error: &Error) -> String {
    let mut last: &dyn std::error::Error = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

/// Returns the code that the service has given to the error. The driver passes its answer on as text alone.
fn code(text: &str) -> Option<&str> {
    between(text, "<Code>", "</Code>")
}

/// Returns the status of the answer.
fn status(text: &str) -> Option<u16> {
    between(text, "status code: ", " ")?.parse().ok()
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    rest.split_once(after).map(|(found, _)| found)
}
