//! Shares with their confidence intervals.

use std::fmt;

use serde::Serialize;
use statrs::function::beta::beta_reg;
use statrs::function::gamma::gamma_lr;

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

/// Returns the bounds of a probability, of which `some` of `all` independent trials had the event: the interval of Clopper and
/// Pearson, which is wrong with a probability of at most `alpha`, half of it on each side.
///
/// Source: C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial",
/// Biometrika 26 (1934). The lower bound is the `p` with which `some` or more of `all` have the probability `alpha / 2`,
/// which is the regularized incomplete beta function of `some` and `all - some + 1` at `p`; the upper bound follows with
/// the roles of event and no event exchanged.
#[must_use]
pub fn clopper_pearson(some: u64, all: u64, alpha: f64) -> (f64, f64) {
    let lower = |some: u64| match some {
        0 => 0.0,
        _ => with_tail(some as f64, (all - some) as f64 + 1.0, alpha / 2.0).0,
    };
    let upper = |some: u64| match all - some {
        0 => 1.0,
        none => with_tail(some as f64 + 1.0, none as f64, 1.0 - alpha / 2.0).1,
    };
    let some = some.min(all);
    (lower(some), upper(some))
}

/// Returns the bounds of the mean of a Poisson count, which are wrong with a probability of at most `alpha`, half of it on each
/// side. Source: F. Garwood, "Fiducial limits for the Poisson distribution", Biometrika 28 (1936).
#[must_use]
pub fn poisson(count: u64, alpha: f64) -> (f64, f64) {
    // A count of `n` or more has the probability of the regularized lower incomplete gamma function of `n` at the mean.
    let far = 4.0 * count as f64 + 100.0;
    let mean = |n: f64, tail: f64| bisect(0.0, far, |mean| gamma_lr(n, mean) < tail);
    let lower = match count {
        0 => 0.0,
        _ => mean(count as f64, alpha / 2.0).0,
    };
    (lower, mean(count as f64 + 1.0, 1.0 - alpha / 2.0).1)
}

/// Returns the two neighbours between which the regularized incomplete beta function of `a` and `b` reaches `tail`. Its inverse
/// of the library is not used, because it stops before it is this exact.
fn with_tail(a: f64, b: f64, tail: f64) -> (f64, f64) {
    bisect(0.0, 1.0, |p| beta_reg(a, b, p) < tail)
}

/// Returns the two neighbours between which a condition that holds at first ends.
fn bisect(mut least: f64, mut most: f64, holds: impl Fn(f64) -> bool) -> (f64, f64) {
    loop {
        let middle = f64::midpoint(least, most);
        if middle <= least || most <= middle {
            return (least, most);
        }
        match holds(middle) {
            true => least = middle,
            false => most = middle,
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

    #[test]
    fn bounds_are_those_of_clopper_and_pearson() {
        // Of R: binom.test(8, 10)$conf.int and binom.test(50, 1000)$conf.int.
        let is = |(least, most): (f64, f64), expected: (f64, f64)| {
            (least - expected.0).abs() < 5e-7 && (most - expected.1).abs() < 5e-7
        };
        let ten = clopper_pearson(8, 10, 0.05);
        assert!(is(ten, (0.443_904_5, 0.974_789_3)), "{ten:?}");
        // With no event, and with nothing else, there are closed forms.
        for (all, alpha) in [(10, 0.05), (100_000, 1e-5), (10_000_000, 1e-3)] {
            let most = -f64::exp_m1((alpha / 2.0_f64).ln() / all as f64);
            let none = clopper_pearson(0, all, alpha);
            assert_eq!(none.0, 0.0);
            assert!((none.1 / most - 1.0).abs() < 1e-6, "{none:?}, {most}");
            let (least, one) = clopper_pearson(all, all, alpha);
            assert_eq!(one, 1.0);
            assert!(((1.0 - least) / most - 1.0).abs() < 1e-6, "{least}");
        }
    }

    #[test]
    fn bounds_of_a_count_are_those_of_garwood() {
        // Of his table: 0 and 10 at 95 %.
        let is = |(least, most): (f64, f64), expected: (f64, f64)| {
            (least - expected.0).abs() < 5e-3 && (most - expected.1).abs() < 5e-3
        };
        assert!(is(poisson(0, 0.05), (0.0, 3.689)), "{:?}", poisson(0, 0.05));
        assert!(
            is(poisson(10, 0.05), (4.795, 18.39)),
            "{:?}",
            poisson(10, 0.05)
        );
    }

    /// The interval of every count of a small number of trials has every probability as often as it must.
    #[test]
    fn bounds_have_the_probability_as_often_as_they_must() {
        let all = 30u64;
        let alpha = 0.05;
        for percent in 1..100 {
            let p = f64::from(percent) / 100.0;
            let mut covered = 0.0;
            let mut share = (1.0 - p).powi(30);
            for some in 0..=all {
                let (least, most) = clopper_pearson(some, all, alpha);
                if least <= p && p <= most {
                    covered += share;
                }
                share *= (all - some) as f64 / (some + 1) as f64 * p / (1.0 - p);
            }
            assert!(1.0 - alpha <= covered, "{p}: {covered}");
        }
    }

    /// Many runs are where such functions lose digits: the tail at the bound, summed up, is the half of `alpha`.
    #[test]
    fn bounds_of_millions_of_runs_are_exact() {
        for (some, all) in [(3u64, 1_000_000u64), (5_000, 100_000), (400_000, 1_000_000)] {
            let (least, _) = clopper_pearson(some, all, 1e-4);
            let mut term = ln_choose(all, some)
                + some as f64 * least.ln()
                + (all - some) as f64 * (-least).ln_1p();
            let mut tail = 0.0;
            for count in some..all {
                tail += term.exp();
                term += ((all - count) as f64 / (count + 1) as f64 * least / (1.0 - least)).ln();
                if term < -60.0 {
                    break;
                }
            }
            assert!((tail / 5e-5 - 1.0).abs() < 1e-4, "{some} of {all}: {tail}");
        }
    }

    fn ln_choose(all: u64, some: u64) -> f64 {
        use statrs::function::gamma::ln_gamma;
        let ln = |n: u64| ln_gamma(n as f64 + 1.0);
        ln(all) - ln(some) - ln(all - some)
    }
}
