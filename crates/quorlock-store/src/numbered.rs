//! Records in stores that name their values by text: how a key is written, and the number of the write beside the record.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};

use crate::store::{Draft, Key};

/// What a name has of a key as it is. A dot is not among it: `.` and `..` are no names. Nor is a slash.
const NAME: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b':');

/// The length of the number of a write, in hexadecimal digits.
const DIGITS: usize = 16;

/// Returns the name of a record.
pub(crate) fn name(key: &Key) -> String {
    percent_encode(key.as_bytes(), NAME).to_string()
}

/// Returns the key of a record with this name; `None` if no key has it.
pub(crate) fn key(name: &str) -> Option<Key> {
    let bytes: Vec<u8> = percent_decode_str(name).collect();
    let is_key = percent_encode(&bytes, NAME).to_string() == name;
    is_key.then(|| Key::new(bytes))
}

/// Returns a number as it is written.
pub(crate) fn digits(number: u64) -> String {
    format!("{number:0DIGITS$x}")
}

/// Returns a number that is written so.
pub(crate) fn number(digits: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(digits).ok()?;
    u64::from_str_radix(digits, 16).ok()
}

/// Returns what is stored: the number of the write, in a line of its own, and the record.
pub(crate) fn data(draft: &Draft) -> Vec<u8> {
    let mut data = digits(draft.number).into_bytes();
    data.push(b'\n');
    data.extend_from_slice(&draft.record);
    data
}

/// Splits what is stored into the number of the write and the record.
pub(crate) fn parse(mut data: Vec<u8>) -> Option<(u64, Vec<u8>)> {
    let (digits, rest) = data.split_at_checked(DIGITS)?;
    let number = number(digits)?;
    if !rest.starts_with(b"\n") {
        return None;
    }
    data.drain(..=DIGITS);
    Some((number, data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_a_name_of_its_own() {
        for (bytes, written) in [
            (&b"orders/42"[..], "orders%2F42"),
            (b".", "%2E"),
            (b"%2E", "%252E"),
            (b"A_b-c:1", "A_b-c:1"),
            (b"\xff\x01", "%FF%01"),
        ] {
            let named = Key::new(bytes);
            assert_eq!(name(&named), written);
            assert_eq!(key(written), Some(named));
        }
        assert_eq!(key("a.b"), None);
        assert_eq!(key("%2f"), None);
    }

    #[test]
    fn what_is_no_record_is_not_taken_for_one() {
        for data in ["", "hello", "000000000000000x\n", "0000000000000001 a"] {
            assert_eq!(parse(data.into()), None, "{data}");
        }
        let parsed = parse(b"000000000000002a\nrecord\n".to_vec());
        assert_eq!(parsed, Some((42, b"record\n".to_vec())));
    }
}
