//! Shares with their confidence intervals.

use std::fmt;

use serde::Serialize;

/// A share with its 95 % confidence interval (Wilson score interval).
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Interval {
    /// The measured share.
    pub share: f64,
    /// The lower bound.
    pub min: f64,
    /// The upper bound.
    pub max: f64,
}

impl Interval {
    /// Computes the share of `some` in `all`, with its interval.
    #[must_use]
    pub fn of(some: u64, all: u64) -> Self {
        if all == 0 {
            return Interval {
                share: 0.0,
                min: 0.0,
                max: 1.0,
            };
        }
        let z = 1.959_963_984_540_054_f64;
        let (n, share) = (all as f64, some as f64 / all as f64);
        let middle = share + z * z / (2.0 * n);
        let reach = z * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
        let scale = 1.0 + z * z / n;
        // At the ends the formula is exact but its rounding is not: without these, the lower bound of a zero is 8.6e-19.
        let (min, max) = ((middle - reach) / scale, (middle + reach) / scale);
        Interval {
            share,
            min: if some == 0 { 0.0 } else { min.max(0.0) },
            max: if some == all { 1.0 } else { max.min(1.0) },
        }
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.1} % (95 %: {:.1} to {:.1} %)",
            self.share * 100.0,
            self.min * 100.0,
            self.max * 100.0
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_wilson() {
        // Computed by hand: 8 of 10.
        let interval = Interval::of(8, 10);
        assert!((interval.min - 0.4902).abs() < 1e-4, "{interval:?}");
        assert!((interval.max - 0.9433).abs() < 1e-4, "{interval:?}");
        let none = Interval::of(0, 100);
        assert_eq!(none.min, 0.0);
        assert!((none.max - 0.0370).abs() < 1e-4, "{none:?}");
        let all = Interval::of(100, 100);
        assert_eq!(all.max, 1.0);
        assert!((all.min - 0.9630).abs() < 1e-4, "{all:?}");
    }
}
