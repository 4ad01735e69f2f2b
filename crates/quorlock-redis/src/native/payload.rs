//! The payload of `RESTORE` that makes a claim: the hash {owner: 1}, as `DUMP` would return it.
//!
//! It is the type and the hash, the version of the format, and a checksum. Servers from Redis 7.0 on store a small hash in
//! the compact form, and take it as it is, which costs them a tenth less of a pair. All others convert the oldest form to their own.

use crc::{CRC_64_REDIS, Crc};
use quorlock_core::owner::OwnerId;

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

/// The hold count 1 in the oldest form, behind its length.
const OLDEST_COUNT: [u8; 2] = [1, b'1'];

/// The type of a hash in the compact form.
const COMPACT: u8 = 16;

/// The hold count 1 in the compact form: a small number, the length of this entry, and the end of the hash.
const COMPACT_COUNT: [u8; 3] = [1, 1, 0xff];

/// The bytes of a hash in the compact form besides the owner's: its own length and number of entries, the head and the length of
/// the owner's entry, and the count.
const COMPACT_REST: usize = 4 + 2 + 2 + COMPACT_COUNT.len();

/// The largest length of a text that is written together with its kind in one byte.
const MOST_LENGTH: usize = 63;
const _: () = assert!(OwnerId::MOST_BYTES <= MOST_LENGTH);

/// The bit of an entry that is a text of at most [`MOST_LENGTH`] bytes.
const TEXT: u8 = 0x80;

/// The bit of a length that needs a second byte.
const LONGER: u8 = 0x40;

/// Returns the payload of this owner's claim.
pub(super) fn of(owner: OwnerId, form: Form) -> Vec<u8> {
    let mut text = [0; OwnerId::MOST_BYTES];
    let text = owner.write_to(&mut text);
    let length = text.len() as u8;
    let mut payload = Vec::with_capacity(3 + COMPACT_REST + text.len() + 10);
    match form {
        Form::Oldest => {
            payload.extend_from_slice(&OLDEST);
            payload.push(length);
            payload.extend_from_slice(text);
            payload.extend_from_slice(&OLDEST_COUNT);
        }
        Form::Compact => {
            let bytes = (COMPACT_REST + text.len()) as u8;
            payload.push(COMPACT);
            if usize::from(bytes) <= MOST_LENGTH {
                payload.push(bytes);
            } else {
                payload.extend_from_slice(&[LONGER, bytes]);
            }
            payload.extend_from_slice(&[bytes, 0, 0, 0, 2, 0, TEXT | length]);
            payload.extend_from_slice(text);
            payload.push(length + 1);
            payload.extend_from_slice(&COMPACT_COUNT);
        }
    }
    payload.extend_from_slice(&VERSION);
    payload.extend_from_slice(&CHECKSUM.checksum(&payload).to_le_bytes());
    payload
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorlock_core::owner::ClientId;

    /// These are what Redis 7.0 returned to `DUMP`, where it does not compress the text.
    #[test]
    fn the_compact_form_has_the_lengths_of_its_parts() {
        let client = ClientId::from_random(7);
        let head = |number| of(OwnerId { client, number }, Form::Compact);
        assert_eq!(head(1)[..9], [16, 49, 49, 0, 0, 0, 2, 0, 0xa6]);
        assert_eq!(head(1)[47..53], [39, 1, 1, 0xff, 6, 0]);
        let longest = head(12_345_678_901_234_567_890);
        assert_eq!(longest[..10], [16, 0x40, 68, 68, 0, 0, 0, 2, 0, 0xb9]);
    }

    #[test]
    fn the_oldest_form_is_what_redis_accepts() {
        let client = ClientId::from_random(7);
        let payload = of(OwnerId { client, number: 1 }, Form::Oldest);
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
