//! The error when none of several sentinels or nodes had an answer.

use quorlock_core::transport::{Cause, TransportError};

use crate::connect::Endpoint;
use crate::failure;

/// The maximum number of refusals in the error text.
const MOST_TOLD: usize = 5;

/// Why each queried sentinel or node had no valid answer.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Vec<(Endpoint, TransportError)>);

impl Refusals {
    pub(crate) fn push(&mut self, asked: &Endpoint, error: TransportError) {
        self.0.push((asked.clone(), error));
    }

    /// Combines the refusals into one error. Its cause is one that a user can fix, if there is one. `what` states what
    /// none of them has answered.
    pub(crate) fn into_error(self, what: &str) -> TransportError {
        let causes = || self.0.iter().map(|(_, error)| error.cause);
        let cause = causes()
            .find(|cause| *cause == Cause::UnknownGroup)
            .or_else(|| causes().find(|cause| !cause.may_pass()))
            .or_else(|| causes().find(|cause| *cause != Cause::TimedOut))
            .unwrap_or(Cause::Unreachable);
        let each = self.0.iter().take(MOST_TOLD);
        let mut each: Vec<_> = each
            .map(|(asked, error)| format!("{asked}: {}", error.detail))
            .collect();
        let untold = self.0.len() - each.len();
        if 0 < untold {
            each.push(format!("and {untold} more"));
        }
        let detail = format!("{what} ({})", each.join("; "));
        failure::definite(cause, detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(causes: &[Cause]) -> TransportError {
        let mut refusals = Refusals::default();
        for (port, cause) in (1..).zip(causes) {
            let host = "h".to_owned();
            let error = failure::definite(*cause, format!("no {port}"));
            refusals.push(&Endpoint::Tcp { host, port }, error);
        }
        refusals.into_error("none says it")
    }

    #[test]
    fn what_a_user_can_mend_stands_before_what_may_pass() {
        use Cause::{NoAuth, TimedOut, UnknownGroup, Unreachable};
        assert_eq!(
            error(&[Unreachable, NoAuth, UnknownGroup]).cause,
            UnknownGroup
        );
        assert_eq!(error(&[Unreachable, NoAuth]).cause, NoAuth);
        assert_eq!(error(&[TimedOut, Unreachable]).cause, Unreachable);
        let text = error(&[TimedOut, TimedOut]);
        assert_eq!(text.cause, Unreachable);
        assert_eq!(text.detail, "none says it (h:1: no 1; h:2: no 2)");
    }

    #[test]
    fn of_many_a_few_are_told() {
        let text = error(&[Cause::TimedOut; 40]).detail;
        assert!(text.ends_with("h:5: no 5; and 35 more)"), "{text}");
    }
}
