//! Numbers as Redis reads and writes them.

/// Parses an integer: digits, optionally after a `-`, and nothing else; no leading zeros, no `-0`.
pub(crate) fn parse_int(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_plain = match digits {
        [b'0'] => digits.len() == text.len(),
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if !is_plain {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Parses a score: a number in any format of C, including `inf` but not `nan`.
pub(crate) fn parse_double(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    let number: f64 = text.parse().ok()?;
    (!number.is_nan()).then_some(number)
}

/// Formats a number as C does with `%.17g`, except that `inf`, `-inf` and `nan` are the same on all systems.
pub(crate) fn double(number: f64) -> String {
    const DIGITS: usize = 17;
    if number.is_nan() {
        return if number.is_sign_negative() {
            "-nan"
        } else {
            "nan"
        }
        .into();
    }
    if number.is_infinite() {
        return if number < 0.0 { "-inf" } else { "inf" }.into();
    }
    let scientific = format!("{number:.*e}", DIGITS - 1);
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    match usize::try_from(exponent) {
        Ok(whole) if whole < DIGITS => {
            short(&format!("{number:.*}", DIGITS - 1 - whole)).to_owned()
        }
        Err(_) if -5 < exponent => {
            let places = DIGITS - 1 + usize::try_from(-exponent).unwrap_or(0);
            short(&format!("{number:.places$}")).to_owned()
        }
        _ => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{}e{sign}{:02}", short(mantissa), exponent.unsigned_abs())
        }
    }
}

/// Removes trailing zeros after the decimal point.
fn short(digits: &str) -> &str {
    if digits.contains('.') {
        digits.trim_end_matches('0').trim_end_matches('.')
    } else {
        digits
    }
}

/// Converts a number of Lua to an integer by dropping its fraction.
#[expect(clippy::cast_possible_truncation, reason = "the bounds are checked")]
pub(crate) fn truncated(number: f64) -> i64 {
    const BOUND: f64 = 9_223_372_036_854_775_808.0;
    if (-BOUND..BOUND).contains(&number) {
        number as i64
    } else {
        // Out of range, the result is that of the processors on which Redis mostly runs.
        i64::MIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_read_strictly() {
        for (text, number) in [("0", 0), ("-1", -1), ("9223372036854775807", i64::MAX)] {
            assert_eq!(parse_int(text.as_bytes()), Some(number));
        }
        for text in [
            "",
            "-",
            "+1",
            "01",
            "-0",
            "1 ",
            "0x1",
            "1.0",
            "9223372036854775808",
        ] {
            assert_eq!(parse_int(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn doubles_are_written_with_seventeen_digits() {
        for (number, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (1.5, "1.5"),
            (0.1, "0.10000000000000001"),
            (0.0001, "0.0001"),
            (0.00001, "1.0000000000000001e-05"),
            (1_767_225_600_000.0, "1767225600000"),
            (9_007_199_254_740_991.0, "9007199254740991"),
            (1e17, "1e+17"),
            (1.5e300, "1.5000000000000001e+300"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(double(number), text);
        }
    }

    #[test]
    fn what_no_integer_holds_becomes_the_least() {
        assert_eq!(truncated(-1.9), -1);
        assert_eq!(truncated(f64::NAN), i64::MIN);
        assert_eq!(truncated(1e19), i64::MIN);
    }
}
