//! The payload of `RESTORE` that makes a claim: the hash {owner: 1}, as `DUMP` would return it.
//!
//! It is in the oldest encoding of a hash, which every server loads and converts to its own: the type, the number of
//! fields, each field and value behind its length, the version of the format, and a checksum.

use crc::{CRC_64_REDIS, Crc};
use quorlock_core::owner::OwnerId;

/// A hash as a list of its fields and values.
const HASH: u8 = 4;

/// The version of the format, as of Redis 2.6. Servers refuse versions that are newer than their own.
const VERSION: [u8; 2] = 6_u16.to_le_bytes();

const CHECKSUM: Crc<u64> = Crc::<u64>::new(&CRC_64_REDIS);

/// The first bytes of a hash with one field.
const HEAD: [u8; 2] = [HASH, 1];

/// The hold count 1, behind its length.
const COUNT: [u8; 2] = [1, b'1'];

/// The largest length that is written in one byte.
const MOST_LENGTH: usize = 63;
const _: () = assert!(OwnerId::MOST_BYTES <= MOST_LENGTH);

/// Returns the payload of this owner's claim.
pub(super) fn of(owner: OwnerId) -> Vec<u8> {
    let mut text = [0; OwnerId::MOST_BYTES];
    let text = owner.write_to(&mut text);
    let mut payload = Vec::with_capacity(HEAD.len() + 1 + text.len() + COUNT.len() + 10);
    payload.extend_from_slice(&HEAD);
    payload.push(text.len() as u8);
    payload.extend_from_slice(text);
    payload.extend_from_slice(&COUNT);
    payload.extend_from_slice(&VERSION);
    payload.extend_from_slice(&CHECKSUM.checksum(&payload).to_le_bytes());
    payload
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorlock_core::owner::ClientId;

    #[test]
    fn a_payload_is_what_redis_accepts() {
        let client = ClientId::from_random(7);
        let payload = of(OwnerId { client, number: 1 });
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
