//! Numbers as people read them.

use std::time::Duration;

/// Returns a span with two or three digits: `310 µs`, `3.1 ms`, `31 ms`, `1.5 s`, `60 s`.
pub(crate) fn span(span: Duration) -> String {
    let millis = span.as_secs_f64() * 1_000.0;
    match millis {
        0.0 => "0 s".to_owned(),
        _ if millis < 1.0 => format!("{:.0} µs", millis * 1_000.0),
        _ if millis < 10.0 => trimmed(format!("{millis:.1}"), " ms"),
        _ if millis < 1_000.0 => format!("{millis:.0} ms"),
        _ if millis < 10_000.0 => trimmed(format!("{:.1}", millis / 1_000.0), " s"),
        _ => format!("{:.0} s", millis / 1_000.0),
    }
}

/// Returns a number of microseconds with its sign.
pub(crate) fn signed(micros: i64) -> String {
    let sign = if micros < 0 { '-' } else { '+' };
    format!(
        "{sign}{}",
        span(Duration::from_micros(micros.unsigned_abs()))
    )
}

/// Returns a number of bytes: `900 B`, `1.2 MiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    const STEP: f64 = 1_024.0;
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let mut left = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if left < STEP {
            return match unit {
                "B" => format!("{left} B"),
                _ => format!("{left:.1} {unit}"),
            };
        }
        left /= STEP;
    }
    format!("{left:.1} TiB")
}

/// Returns a count with its noun.
pub(crate) fn count(count: u64, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

fn trimmed(number: String, unit: &str) -> String {
    let number = number.strip_suffix(".0").unwrap_or(&number);
    format!("{number}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_for_people() {
        for (micros, shown) in [
            (0, "0 s"),
            (312, "312 µs"),
            (3_140, "3.1 ms"),
            (31_400, "31 ms"),
            (1_500_000, "1.5 s"),
            (2_000_000, "2 s"),
            (60_000_000, "60 s"),
        ] {
            assert_eq!(span(Duration::from_micros(micros)), shown);
        }
        assert_eq!(
            (signed(-1_500), signed(20)),
            ("-1.5 ms".into(), "+20 µs".into())
        );
        for (number, shown) in [(0, "0 B"), (1_023, "1023 B"), (1_258_292, "1.2 MiB")] {
            assert_eq!(bytes(number), shown);
        }
        assert_eq!(
            (count(1, "node"), count(2, "node")),
            ("1 node".into(), "2 nodes".into())
        );
    }
}
