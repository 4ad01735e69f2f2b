//! Exit codes and errors of the command.

use quorlock::{AcquireError, ConfigError, ConnectError};

/// The exit code of the command, numbered as in `sysexits.h` where that has a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Code(pub(crate) u8);

impl Code {
    /// The command succeeded.
    pub(crate) const SUCCESS: Code = Code(0);
    /// The command line is wrong.
    pub(crate) const USAGE: Code = Code(64);
    /// No quorum of servers answers.
    pub(crate) const UNAVAILABLE: Code = Code(69);
    /// The system refused a process, a pipe or a signal, which should not happen.
    pub(crate) const SYSTEM: Code = Code(71);
    /// The command succeeded, but the release of the lock is not confirmed.
    pub(crate) const UNRELEASED: Code = Code(74);
    /// Others hold the lock.
    pub(crate) const CONTENDED: Code = Code(75);
    /// The lock was lost while the command ran.
    pub(crate) const LOST: Code = Code(76);
    /// Settings, credentials or permissions are wrong.
    pub(crate) const CONFIG: Code = Code(78);
    /// The command cannot be executed.
    pub(crate) const CANNOT_EXECUTE: Code = Code(126);
    /// The command was not found.
    pub(crate) const NOT_FOUND: Code = Code(127);

    /// Returns the exit code after a release that is not confirmed. A command that failed says more by its own code.
    pub(crate) fn of_unreleased(self) -> Code {
        match self {
            Code::SUCCESS => Code::UNRELEASED,
            code => code,
        }
    }

    /// Returns the exit code for a process that was ended by this signal.
    pub(crate) fn of_signal(signal: i32) -> Code {
        Code(u8::try_from(signal.saturating_add(128)).unwrap_or(u8::MAX))
    }
}

/// The reason why the command ends, and its exit code.
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

    /// Returns a failure for a wrong command line.
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Failure::new(Code::USAGE, text)
    }

    /// Returns a failure for wrong settings.
    pub(crate) fn config(text: impl Into<String>) -> Self {
        Failure::new(Code::CONFIG, text)
    }

    /// Returns a failure for an operation that the system refused.
    pub(crate) fn system(what: &str, error: impl std::fmt::Display) -> Self {
        Failure::new(Code::SYSTEM, format!("{what}: {error}"))
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        let code = match &error {
            // These come from the command line, unless they come from a file.
            ConfigError::Name(_)
            | ConfigError::UnfitName { .. }
            | ConfigError::Zero { .. }
            | ConfigError::SpanTooLong { .. }
            | ConfigError::LeaseTooShort { .. }
            | ConfigError::LeaseTooLong { .. }
            | ConfigError::MaxHold { .. }
            | ConfigError::FairQuorum { .. }
            | ConfigError::TwoModes { .. }
            | ConfigError::TooManyNames { .. }
            | ConfigError::TooManyMembers { .. }
            | ConfigError::SemaphoreName { .. }
            | ConfigError::Permits { .. } => Code::USAGE,
            _ => Code::CONFIG,
        };
        let hint = match &error {
            ConfigError::LeaseTooLong { .. } => " (--lease, --longest-lease)",
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
            error if error.is_final() => Failure::config(error.to_string()),
            error => Failure::new(Code::UNAVAILABLE, error.to_string()),
        }
    }
}
