//! How long a fault lasts: a span, or a law from which it is drawn.

use std::fmt;
use std::str::FromStr;

use quorlock_sim_plan::draw::Draw;
use quorlock_sim_plan::time::SimTime;

/// How long a fault lasts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Length {
    /// Always as long. Zero for a fault that happens once.
    Fixed(SimTime),
    /// Uniform between two bounds.
    Uniform(SimTime, SimTime),
    /// Exponential with this mean.
    Exponential(SimTime),
    /// Pareto: the probability of more than `t` is `(scale / t) ^ shape`, for each `t` that is at least the scale.
    Pareto(SimTime, f64),
}

/// The error for a text that is not the length of a fault.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{0:?} is not a length: write a span such as 5s, or uniform(1s, 3s), exponential(2s) or pareto(50ms, 1.1)"
)]
pub struct NotALength(String);

impl FromStr for Length {
    type Err = NotALength;

    fn from_str(text: &str) -> Result<Self, NotALength> {
        let wrong = || NotALength(text.to_owned());
        let span = |text: &str| text.trim().parse::<SimTime>().map_err(|_| wrong());
        let Some((law, rest)) = text.split_once('(') else {
            return Ok(Length::Fixed(span(text)?));
        };
        let arguments = rest.trim_end().strip_suffix(')').ok_or_else(wrong)?;
        let (first, second) = match arguments.split_once(',') {
            Some((first, second)) => (first, Some(second.trim())),
            None => (arguments, None),
        };
        let first = span(first)?;
        match (law.trim(), second) {
            ("exponential", None) if SimTime::ZERO < first => Ok(Length::Exponential(first)),
            ("uniform", Some(most)) => match span(most)? {
                most if first <= most => Ok(Length::Uniform(first, most)),
                _ => Err(wrong()),
            },
            ("pareto", Some(shape)) if SimTime::ZERO < first => match shape.parse() {
                Ok(shape) if 0.0 < shape && f64::is_finite(shape) => {
                    Ok(Length::Pareto(first, shape))
                }
                _ => Err(wrong()),
            },
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Length::Fixed(span) => write!(f, "{span}"),
            Length::Uniform(least, most) => write!(f, "uniform({least}, {most})"),
            Length::Exponential(mean) => write!(f, "exponential({mean})"),
            Length::Pareto(scale, shape) => write!(f, "pareto({scale}, {shape})"),
        }
    }
}

impl Length {
    /// Returns the largest length, or `None` if there is none.
    pub(super) fn bound(self) -> Option<SimTime> {
        match self {
            Length::Fixed(span) | Length::Uniform(_, span) => Some(span),
            Length::Exponential(_) | Length::Pareto(..) => None,
        }
    }

    /// Returns the probability of a length of more than `cut`.
    pub(super) fn share_beyond(self, cut: SimTime) -> f64 {
        let over = |span: SimTime| cut.as_nanos() as f64 / span.as_nanos() as f64;
        match self {
            Length::Fixed(span) => f64::from(u8::from(cut < span)),
            Length::Uniform(least, most) if least == most => f64::from(u8::from(cut < most)),
            Length::Uniform(least, most) => {
                let beyond = most.minus(cut.max(least)).as_nanos() as f64;
                beyond / most.minus(least).as_nanos() as f64
            }
            Length::Exponential(mean) => libm::exp(-over(mean)),
            Length::Pareto(scale, _) if cut <= scale => 1.0,
            Length::Pareto(scale, shape) => libm::pow(over(scale), -shape),
        }
    }

    /// Draws a length of at most `cut`, from the law under this condition.
    pub(super) fn draw(self, draw: &mut Draw, cut: SimTime) -> SimTime {
        match self {
            Length::Fixed(span) => span.min(cut),
            Length::Uniform(least, most) => {
                SimTime::nanos(draw.between(least.as_nanos(), most.min(cut).as_nanos()))
            }
            Length::Exponential(_) | Length::Pareto(..) => self.quantile(unit(draw), cut),
        }
    }

    /// Returns the length that a share of the lengths of at most `cut` does not exceed.
    pub(in crate::study) fn quantile(self, share: f64, cut: SimTime) -> SimTime {
        // Inversion: what remains is the share of all lengths that are longer, from 1 down to that beyond the cut.
        let beyond = self.share_beyond(cut);
        self.with_share_beyond(1.0 - share * (1.0 - beyond))
            .min(cut)
    }

    /// Returns the length that a share of all lengths exceeds.
    fn with_share_beyond(self, share: f64) -> SimTime {
        let times =
            |span: SimTime, factor: f64| SimTime::nanos((span.as_nanos() as f64 * factor) as u64);
        match self {
            Length::Fixed(span) | Length::Uniform(_, span) => span,
            Length::Exponential(mean) => times(mean, -libm::log(share)),
            Length::Pareto(scale, shape) => times(scale, libm::pow(share, -1.0 / shape)),
        }
    }
}

/// Draws a number in `0.0..1.0`. Functions of such numbers are those of the crate `libm`, so that a seed has the same plan on
/// every machine.
pub(in crate::study) fn unit(draw: &mut Draw) -> f64 {
    (draw.bits() >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorlock_sim_plan::draw::Purpose;

    #[test]
    fn lengths_are_read_as_they_are_written() {
        for text in [
            "5s",
            "0s",
            "uniform(1s, 3s)",
            "exponential(2s)",
            "pareto(50ms, 1.1)",
        ] {
            assert_eq!(text.parse::<Length>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "5",
            "uniform(3s, 1s)",
            "uniform(1s)",
            "pareto(0s, 1)",
            "pareto(1s, -1)",
            "normal(1s)",
            "exponential(1s",
        ] {
            assert!(text.parse::<Length>().is_err(), "{text}");
        }
    }

    /// The share of drawn lengths beyond some spans is that of the law.
    #[test]
    fn lengths_follow_their_law_under_the_cut() {
        let cut = SimTime::secs(4);
        for text in ["uniform(1s, 5s)", "exponential(2s)", "pareto(500ms, 1.1)"] {
            let length: Length = text.parse().unwrap();
            let mut draw = Draw::new(1, Purpose::Strikes, 0);
            let drawn: Vec<SimTime> = (0..20_000).map(|_| length.draw(&mut draw, cut)).collect();
            for at in [1_000, 1_500, 2_000, 3_000].map(SimTime::millis) {
                let beyond = length.share_beyond(cut);
                let expected = (length.share_beyond(at) - beyond) / (1.0 - beyond);
                let longer = drawn.iter().filter(|drawn| at < **drawn).count();
                let share = longer as f64 / drawn.len() as f64;
                // Five standard deviations.
                assert!(
                    (share - expected).abs() < 0.018,
                    "{text} at {at}: {share}, {expected}"
                );
            }
            assert!(drawn.iter().all(|drawn| *drawn <= cut));
        }
    }
}
