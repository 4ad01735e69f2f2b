//! `RESTORE`, for small hashes in their oldest encoding and in that of Redis 7.0.

use crc::{CRC_64_REDIS, Crc};

use crate::call::{Answer, Call};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::value::{Hash, Value};

/// The checksum at the end of a payload.
const CHECKSUM: Crc<u64> = Crc::<u64>::new(&CRC_64_REDIS);

/// The newest encoding that is accepted: that of Redis 7.0.
const NEWEST: u16 = 10;

/// The type of a hash as a list of its fields and values.
const HASH: u8 = 4;

/// The type of a hash as a listpack.
const LISTPACK: u8 = 16;

/// Executes `RESTORE key ttl payload [REPLACE] [ABSTTL]`.
pub(super) fn restore(call: &mut Call<'_>) -> Answer {
    let (mut replaces, mut is_absolute) = (false, false);
    for at in 4..call.words.len() {
        if call.word_is(at, "replace") {
            replaces = true;
        } else if call.word_is(at, "absttl") {
            is_absolute = true;
        } else {
            return Err(Refusal::SYNTAX);
        }
    }
    let key = call.word(1);
    if !replaces && call.value(key).is_some() {
        return Err(Refusal::of("BUSYKEY Target key name already exists."));
    }
    let ttl = call.int(2)?;
    if ttl < 0 {
        return Err(Refusal::of("ERR Invalid TTL value, must be >= 0"));
    }
    let since = if is_absolute { 0 } else { call.now_millis() };
    let expires = match ttl {
        0 => None,
        ttl => Some(ttl.wrapping_add(since)),
    };
    let body = checked(call.word(3)).ok_or(Refusal::of(
        "ERR DUMP payload version or checksum are wrong",
    ))?;
    let hash = hash(body).ok_or(Refusal::of("ERR Bad data format"))?;
    call.data.put(*call.db, key, Value::Hash(hash), expires);
    Ok(Reply::OK)
}

/// Returns a payload without its version and checksum, if both are right.
fn checked(payload: &[u8]) -> Option<&[u8]> {
    let (summed, checksum) = payload.split_last_chunk()?;
    let (body, version) = summed.split_last_chunk()?;
    let is_right = CHECKSUM.checksum(summed) == u64::from_le_bytes(*checksum);
    (is_right && u16::from_le_bytes(*version) <= NEWEST).then_some(body)
}

/// Decodes a hash with at least one field.
fn hash(body: &[u8]) -> Option<Hash> {
    let (&kind, mut rest) = body.split_first()?;
    let words = match kind {
        HASH => {
            let fields = length(&mut rest)?;
            let words = (0..2 * fields).map(|_| text(&mut rest).map(<[u8]>::to_vec));
            words.collect::<Option<Vec<_>>>()?
        }
        LISTPACK => listpack(text(&mut rest)?)?,
        _ => return None,
    };
    let mut hash = Hash::default();
    let (pairs, []) = words.as_chunks() else {
        return None;
    };
    for [field, value] in pairs {
        if !hash.set(field, value.clone()) {
            return None;
        }
    }
    (rest.is_empty() && 0 < hash.len()).then_some(hash)
}

/// Decodes the entries of a listpack: texts of at most 63 bytes, and numbers below 128.
fn listpack(mut rest: &[u8]) -> Option<Vec<Vec<u8>>> {
    let length = rest.len();
    let bytes = u32::from_le_bytes(*take(&mut rest, 4)?.first_chunk()?);
    let entries = u16::from_le_bytes(*take(&mut rest, 2)?.first_chunk()?);
    let mut words = Vec::new();
    for _ in 0..entries {
        let head = take(&mut rest, 1)?.first().copied()?;
        let (word, length) = match head {
            0..0x80 => (head.to_string().into_bytes(), 1),
            0x80..0xc0 => {
                let length = head & 0x3f;
                (take(&mut rest, length.into())?.to_vec(), length + 1)
            }
            _ => return None,
        };
        // For those who read the list from its end.
        if take(&mut rest, 1)? != [length] {
            return None;
        }
        words.push(word);
    }
    let is_whole = usize::try_from(bytes) == Ok(length) && rest == [0xff];
    is_whole.then_some(words)
}

/// Decodes a length of up to 14 bits.
fn length(rest: &mut &[u8]) -> Option<usize> {
    let byte = take(rest, 1)?.first().copied()?;
    let low = usize::from(byte & 0x3f);
    match byte >> 6 {
        0 => Some(low),
        1 => Some(low << 8 | usize::from(*take(rest, 1)?.first()?)),
        _ => None,
    }
}

fn text<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = length(rest)?;
    take(rest, length)
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    rest.split_off(..length)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Redis 7.0 returns to `DUMP` of a hash that it keeps as a list of fields.
    fn payload(fields: &[(&str, &str)]) -> Vec<u8> {
        let mut payload = vec![HASH, fields.len() as u8];
        for word in fields.iter().flat_map(|(field, value)| [field, value]) {
            payload.push(word.len() as u8);
            payload.extend_from_slice(word.as_bytes());
        }
        payload.extend_from_slice(&6_u16.to_le_bytes());
        payload.extend_from_slice(&CHECKSUM.checksum(&payload).to_le_bytes());
        payload
    }

    #[test]
    fn a_payload_is_a_hash() {
        let payload = payload(&[("a", "1"), ("b", "")]);
        let hash = hash(checked(&payload).unwrap()).unwrap();
        assert_eq!(hash.len(), 2);
        assert_eq!(hash.get(b"a"), Some(&b"1".to_vec()));
        assert_eq!(hash.get(b"b"), Some(&Vec::new()));
    }

    #[test]
    fn a_listpack_is_a_hash() {
        let body = b"\x10\x0d\x0d\0\0\0\x02\0\x82ab\x03\x01\x01\xff";
        let hash = hash(body).unwrap();
        assert_eq!(hash.len(), 1);
        assert_eq!(hash.get(b"ab"), Some(&b"1".to_vec()));
        for end in 0..body.len() {
            assert!(super::hash(&body[..end]).is_none(), "{end}");
        }
    }

    #[test]
    fn a_payload_with_any_other_byte_is_refused() {
        let payload = payload(&[("a", "1")]);
        for at in 0..payload.len() {
            let mut other = payload.clone();
            other[at] ^= 1;
            assert!(checked(&other).is_none(), "{at}");
        }
        for end in 0..payload.len() {
            assert!(checked(&payload[..end]).is_none(), "{end}");
        }
    }

    #[test]
    fn what_is_no_hash_is_refused() {
        let bodies: [&[u8]; 9] = [
            // The length, an entry's length, and an odd number of entries.
            b"\x10\x0d\x0c\0\0\0\x02\0\x82ab\x03\x01\x01\xff",
            b"\x10\x0d\x0d\0\0\0\x02\0\x82ab\x02\x01\x01\xff",
            b"\x10\x0b\x0b\0\0\0\x01\0\x82ab\x03\xff",
            b"",
            b"\x00\x01a",
            b"\x04\x00",
            b"\x04\x01\x01a",
            b"\x04\x01\x01a\x011.",
            b"\x04\x02\x01a\x011\x01a\x012",
        ];
        for body in bodies {
            assert!(hash(body).is_none(), "{body:?}");
        }
    }
}
