//! How the command ends.

use quorlock::transport::NodeConnectError;
use quorlock::{AcquireError, ConfigError, ConnectError};

/// How the command ends, as `sysexits.h` numbers it where that has a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Code(pub(crate) u8);

impl Code {
    /// All is well.
    pub(crate) const SUCCESS: Code = Code(0);
    /// The command line is wrong.
    pub(crate) const USAGE: Code = Code(64);
    /// No quorum of servers answers.
    pub(crate) const UNAVAILABLE: Code = Code(69);
    /// What should not happen: the system refused a process, a pipe or a signal.
    pub(crate) const SYSTEM: Code = Code(71);
    /// Others hold the lock.
    pub(crate) const CONTENDED: Code = Code(75);
    /// The lock was lost while the command ran.
    pub(crate) const LOST: Code = Code(76);
    /// Settings, logins or rights are wrong.
    pub(crate) const CONFIG: Code = Code(78);
    /// The command cannot be executed.
    pub(crate) const CANNOT_EXECUTE: Code = Code(126);
    /// The command was not found.
    pub(crate) const NOT_FOUND: Code = Code(127);

    /// A process died of this signal.
    pub(crate) fn of_signal(signal: i32) -> Code {
        Code(u8::try_from(signal.saturating_add(128)).unwrap_or(u8::MAX))
    }
}

/// Why the command ends, and with which code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    pub(crate) text: String,
}

impl Failure {
    pub(crate) fn new(code: Code, text: impl Into<String>) -> Self {
        let text = text.into();
        Failure { code, text }
    }

    /// The command line is wrong.
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Failure::new(Code::USAGE, text)
    }

    /// The settings are wrong.
    pub(crate) fn config(text: impl Into<String>) -> Self {
        Failure::new(Code::CONFIG, text)
    }

    /// The system refused something.
    pub(crate) fn system(what: &str, error: impl std::fmt::Display) -> Self {
        Failure::new(Code::SYSTEM, format!("{what}: {error}"))
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        let code = match &error {
            // What the command line says, unless a file does.
            ConfigError::Name(_)
            | ConfigError::Zero { .. }
            | ConfigError::SpanTooLong { .. }
            | ConfigError::LeaseTooShort { .. }
            | ConfigError::LeaseTooLong { .. }
            | ConfigError::MaxHold { .. }
            | ConfigError::FairQuorum { .. }
            | ConfigError::TwoModes { .. }
            | ConfigError::TooManyNames { .. }
            | ConfigError::TooManyMembers { .. } => Code::USAGE,
            _ => Code::CONFIG,
        };
        let hint = match &error {
            ConfigError::LeaseTooLong { .. } => " (--lease is the one, --longest-lease the other)",
            ConfigError::MaxHold { .. } => " (--max-hold, --lease)",
            _ => "",
        };
        Failure::new(code, format!("{error}{hint}"))
    }
}

impl From<AcquireError> for Failure {
    fn from(error: AcquireError) -> Self {
        let code = match error {
            AcquireError::Config(error) => return error.into(),
            AcquireError::Contended { .. } => Code::CONTENDED,
            AcquireError::Refused { .. }
            | AcquireError::OtherMode { .. }
            | AcquireError::Overlap { .. }
            | AcquireError::Upgrade { .. } => Code::CONFIG,
            _ => Code::UNAVAILABLE,
        };
        Failure::new(code, error.to_string())
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Config(error) => error.into(),
            error if may_pass(&error) => Failure::new(Code::UNAVAILABLE, error.to_string()),
            error => Failure::config(error.to_string()),
        }
    }
}

/// Whether another try may go better without an operator's doing.
pub(crate) fn may_pass(error: &ConnectError) -> bool {
    match error {
        ConnectError::Nodes { problems, .. } => problems.iter().all(|problem| match problem {
            NodeConnectError::Unreachable { .. } | NodeConnectError::TimedOut { .. } => true,
            NodeConnectError::Refused { error, .. } => error.cause.may_pass(),
            _ => false,
        }),
        _ => false,
    }
}
