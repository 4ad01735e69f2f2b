//! The payload of `RESTORE` that makes a claim: the hash {owner: 1}, as `DUMP` would return it. With a margin the claim version is
//! behind the count: {owner: "1 7 10000"}.
//!
//! It is the type and the hash, the version of the format, and a checksum. Servers from Redis 7.0 on store a small hash in
//! the compact form, and take it as it is, which costs them a tenth less of a pair. All others convert the oldest form to their own.

use crc::{CRC_64_REDIS, Crc};
use quorlock_core::message::Acquire;
use quorlock_core::owner::OwnerId;

use super::commands::{DIGITS, digits};

/// How the hash is written.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Form {
    /// As the "listpack" of Redis 7.0.
    #[default]
    Compact,
    /// As a number of fields, and each field and value behind its length. Every server loads it.
    Oldest,
}

/// The version of the format, as of Redis 2.6. Servers refuse versions that are newer than their own.
const VERSION: [u8; 2] = 6_u16.to_le_bytes();

const CHECKSUM: Crc<u64> = Crc::<u64>::new(&CRC_64_REDIS);

/// The type of a hash in the oldest form, and its number of fields.
const OLDEST: [u8; 2] = [4, 1];

/// The type of a hash in the compact form.
const COMPACT: u8 = 16;

/// The hold count 1 in the compact form: a small number, and the length of this entry.
const COMPACT_COUNT: [u8; 2] = [1, 1];

/// The bytes of a hash in the compact form besides its two entries: its length, their number, and its end.
const COMPACT_REST: usize = 4 + 2 + 1;

/// The largest length of a text that is written together with its kind in one byte.
const MOST_LENGTH: usize = 63;
const _: () = assert!(OwnerId::MOST_BYTES <= MOST_LENGTH && MOST_VALUE <= MOST_LENGTH);

/// The largest length of a count and a claim version.
const MOST_VALUE: usize = 1 + 1 + DIGITS + 1 + DIGITS;

/// The most bytes of a payload.
const MOST: usize = 3 + COMPACT_REST + 2 * (2 + MOST_LENGTH) + 2 + 8;

/// The end of a hash in the compact form.
const END: u8 = 0xff;

/// The bit of an entry that is a text of at most [`MOST_LENGTH`] bytes.
const TEXT: u8 = 0x80;

/// The bit of a length that needs a second byte.
const LONGER: u8 = 0x40;

/// Returns the payload of the claim that an acquire makes.
pub(super) fn of(ask: &Acquire, form: Form) -> Buffer<MOST> {
    let mut text = [0; OwnerId::MOST_BYTES];
    let text = ask.owner.write_to(&mut text);
    let mut value = Buffer::<MOST_VALUE>::default();
    value.push(b'1');
    if let Some(keep) = ask.keep {
        for number in [keep.number, ask.lease.millis()] {
            value.push(b' ');
            value.extend_from_slice(digits(number, &mut [0; DIGITS]));
        }
    }
    let value = value.bytes();
    let is_count = value.len() == 1;
    let mut payload = Buffer::default();
    match form {
        Form::Oldest => {
            payload.extend_from_slice(&OLDEST);
            for text in [text, value] {
                payload.push(text.len() as u8);
                payload.extend_from_slice(text);
            }
        }
        Form::Compact => {
            let of_value = if is_count { 0 } else { value.len() };
            let bytes = (COMPACT_REST + 2 + text.len() + 2 + of_value) as u8;
            payload.push(COMPACT);
            if usize::from(bytes) <= MOST_LENGTH {
                payload.push(bytes);
            } else {
                payload.extend_from_slice(&[LONGER, bytes]);
            }
            payload.extend_from_slice(&[bytes, 0, 0, 0, 2, 0]);
            compact(&mut payload, text);
            match is_count {
                true => payload.extend_from_slice(&COMPACT_COUNT),
                false => compact(&mut payload, value),
            }
            payload.push(END);
        }
    }
    payload.extend_from_slice(&VERSION);
    payload.extend_from_slice(&CHECKSUM.checksum(payload.bytes()).to_le_bytes());
    payload
}

/// Writes a text as an entry of the compact form, which ends with its length.
fn compact(payload: &mut Buffer<MOST>, text: &[u8]) {
    let length = text.len() as u8;
    payload.push(TEXT | length);
    payload.extend_from_slice(text);
    payload.push(length + 1);
}

/// Bytes of a bounded number, which are allocated with their owner.
pub(super) struct Buffer<const MOST: usize> {
    bytes: [u8; MOST],
    length: usize,
}

impl<const MOST: usize> Default for Buffer<MOST> {
    fn default() -> Self {
        Buffer {
            bytes: [0; MOST],
            length: 0,
        }
    }
}

impl<const MOST: usize> Buffer<MOST> {
    fn push(&mut self, byte: u8) {
        self.extend_from_slice(&[byte]);
    }

    fn extend_from_slice(&mut self, more: &[u8]) {
        let end = self.length + more.len();
        let place = self.bytes.get_mut(self.length..end);
        place.expect("BUG: it has room").copy_from_slice(more);
        self.length = end;
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::acquire;
    use super::*;
    use quorlock_core::claim_version::ClockMargin;

    /// These are what Redis 7.0 returned to `DUMP`, where it does not compress the text.
    #[test]
    fn the_compact_form_has_the_lengths_of_its_parts() {
        let head = |number| of(&acquire("a", number), Form::Compact);
        assert_eq!(head(1).bytes()[..9], [16, 49, 49, 0, 0, 0, 2, 0, 0xa6]);
        assert_eq!(head(1).bytes()[47..53], [39, 1, 1, 0xff, 6, 0]);
        let longest = head(12_345_678_901_234_567_890);
        assert_eq!(
            longest.bytes()[..10],
            [16, 0x40, 68, 68, 0, 0, 0, 2, 0, 0xb9]
        );
    }

    #[test]
    fn a_claim_version_is_behind_the_count() {
        let mut ask = acquire("a", 1);
        ask.keep = Some(ClockMargin {
            margin_millis: 60_000,
            number: 7,
        });
        let payload = of(&ask, Form::Compact);
        let payload = payload.bytes();
        assert_eq!(payload[..9], [16, 58, 58, 0, 0, 0, 2, 0, 0xa6]);
        let value = [&[39, 0x89][..], b"1 7 30000", &[10, 0xff, 6, 0]].concat();
        assert_eq!(payload[47..62], value);
    }

    #[test]
    fn the_oldest_form_is_what_redis_accepts() {
        let payload = of(&acquire("a", 1), Form::Oldest);
        let payload = payload.bytes();
        let owner = b"00000000-0000-4000-8000-000000000007:1";
        let begins = [&b"\x04\x01\x26"[..], owner, b"\x011\x06\x00"].concat();
        assert_eq!(payload[..begins.len()], begins);
        // Redis 7.0 has accepted this one.
        assert_eq!(
            payload[begins.len()..],
            [58, 164, 110, 176, 195, 86, 129, 38]
        );
    }
}
