//! What a marker states about leases and watches.

use std::fmt;
use std::str::FromStr;

/// The three lengths that a marker states, in milliseconds, each at least as large as the one before it.
///
/// They are equal unless clients are about to raise the longest lease: `60000>60000>120000`, then `60000>120000>120000`,
/// then `120000` ([`LongestLease`](crate::longest_lease::LongestLease)).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Figures {
    /// The longest lease that the node grants.
    pub granted_millis: u64,
    /// How long a node must have been watched for its vote to count.
    pub needed_millis: u64,
    /// How long this process was watched, or is being watched. A longer watch would have found the same, because no
    /// client relied on a longer lease.
    pub watched_millis: u64,
}

impl Figures {
    /// Returns figures that are all equal: no raise is under way.
    #[must_use]
    pub const fn same(millis: u64) -> Self {
        Figures {
            granted_millis: millis,
            needed_millis: millis,
            watched_millis: millis,
        }
    }

    /// Returns the larger one of each of the three figures.
    #[must_use]
    pub fn larger(self, other: Figures) -> Self {
        Figures {
            granted_millis: self.granted_millis.max(other.granted_millis),
            needed_millis: self.needed_millis.max(other.needed_millis),
            watched_millis: self.watched_millis.max(other.watched_millis),
        }
    }

    /// Returns the figures with each changed by `change`.
    #[must_use]
    pub fn map(self, change: impl Fn(u64) -> u64) -> Self {
        Figures {
            granted_millis: change(self.granted_millis),
            needed_millis: change(self.needed_millis),
            watched_millis: change(self.watched_millis),
        }
    }
}

/// The text in a marker: one number if all are equal.
impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figures {
            granted_millis,
            needed_millis,
            watched_millis,
        } = *self;
        if granted_millis == watched_millis {
            return write!(f, "{granted_millis}");
        }
        write!(f, "{granted_millis}>{needed_millis}>{watched_millis}")
    }
}

/// The error for a text that does not state three figures in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoFigures;

impl FromStr for Figures {
    type Err = NoFigures;

    fn from_str(text: &str) -> Result<Self, NoFigures> {
        let mut numbers = text
            .split('>')
            .map(|word| word.parse().map_err(|_| NoFigures));
        let first = numbers.next().ok_or(NoFigures)??;
        let Some(second) = numbers.next() else {
            return Ok(Figures::same(first));
        };
        let (needed_millis, watched_millis) = (second?, numbers.next().ok_or(NoFigures)??);
        let is_ordered = first <= needed_millis && needed_millis <= watched_millis;
        if !is_ordered || numbers.next().is_some() {
            return Err(NoFigures);
        }
        Ok(Figures {
            granted_millis: first,
            needed_millis,
            watched_millis,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_as_they_are_written() {
        let stated = |granted_millis, needed_millis, watched_millis| Figures {
            granted_millis,
            needed_millis,
            watched_millis,
        };
        for (figures, text) in [
            (Figures::same(60_000), "60000"),
            (stated(60_000, 60_000, 120_000), "60000>60000>120000"),
            (stated(60_000, 120_000, 120_000), "60000>120000>120000"),
        ] {
            assert_eq!(figures.to_string(), text);
            assert_eq!(text.parse(), Ok(figures));
        }
        for text in ["", "1>", "1>2", "2>1>3", "1>3>2", "1>2>3>4", "a", "-1"] {
            assert_eq!(text.parse::<Figures>(), Err(NoFigures), "{text}");
        }
    }
}
