//! The identity under which a claim is made.

use std::fmt;
use std::str::FromStr;

/// The identity of a client: a random UUID, drawn once per client.
///
/// It is stored as a number, in two halves, because it is compared and copied far more often than it is written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId {
    high: u64,
    low: u64,
}

impl ClientId {
    /// The length of its text, in bytes.
    const BYTES: usize = 36;

    /// Returns a version 4 UUID made of 128 random bits (six of them are overwritten).
    #[must_use]
    pub fn from_random(bits: u128) -> Self {
        let version = 0x4 << 76;
        let variant = 0b10 << 62;
        ClientId::from_bits(bits & !(0xf << 76) & !(0b11 << 62) | version | variant)
    }

    fn from_bits(bits: u128) -> Self {
        ClientId {
            high: (bits >> 64) as u64,
            low: bits as u64,
        }
    }

    /// Returns its text.
    fn text(self) -> [u8; Self::BYTES] {
        let [begin, middle] = [self.high >> 32, self.high].map(|half| digits(half as u32));
        let [next, end] = [self.low >> 32, self.low].map(|half| digits(half as u32));
        let [a, b, c, d, e, f, g, h] = middle;
        let [i, j, k, l, m, n, o, p] = next;
        let mut text = [b'-'; Self::BYTES];
        let (first, rest) = text.split_at_mut(8);
        first.copy_from_slice(&begin);
        let (groups, last) = rest.split_at_mut(20);
        groups.copy_from_slice(&[
            b'-', a, b, c, d, b'-', e, f, g, h, b'-', i, j, k, l, b'-', m, n, o, p,
        ]);
        last.copy_from_slice(&end);
        text
    }
}

/// Returns the eight hexadecimal digits of a number, computed all at once: each has a byte of a word.
fn digits(number: u32) -> [u8; 8] {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let mut word = u64::from(number);
    word = (word << 16 | word) & 0x0000_ffff_0000_ffff;
    word = (word << 8 | word) & 0x00ff_00ff_00ff_00ff;
    word = (word << 4 | word) & (0x0f * ONES);
    // 1 in each byte from 10 on.
    let letters = (word + 6 * ONES) >> 4 & ONES;
    let to_letter = u64::from(b'a' - b'0' - 10);
    (word + u64::from(b'0') * ONES + letters * to_letter).to_be_bytes()
}

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.text()).expect("BUG: digits and hyphens are ASCII"))
    }
}

impl fmt::Debug for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The owner of a claim: a client, and a number that the client uses for one round only.
///
/// A number is never reused: otherwise the late release of a lost round would end the claim of the next one. On the
/// wire an owner is `<uuid>:<number>`, which other libraries write as `<client uuid>:<thread id>`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnerId {
    /// Client that makes the claim.
    pub client: ClientId,
    /// Number of the client's round; below 2^63, because a JVM reads it as a `long`.
    pub number: u64,
}

impl OwnerId {
    /// The longest text of an owner, in bytes.
    pub const MOST_BYTES: usize = ClientId::BYTES + 1 + 20;

    /// Writes its text, which is ASCII, into the buffer and returns it.
    pub fn write_to(self, text: &mut [u8; Self::MOST_BYTES]) -> &[u8] {
        // The number is written first, from its last digit to its first, because its length determines where the client
        // begins.
        let mut at = text.len();
        let mut rest = self.number;
        let mut put = |byte| {
            at -= 1;
            if let Some(place) = text.get_mut(at) {
                *place = byte;
            }
        };
        loop {
            put(b'0' + (rest % 10) as u8);
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        put(b':');
        let begin = at - ClientId::BYTES;
        let (_, text) = text.split_at_mut(begin);
        if let Some(place) = text.first_chunk_mut() {
            *place = self.client.text();
        }
        text
    }
}

impl fmt::Display for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.client, self.number)
    }
}

impl fmt::Debug for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The error for a text that is not `<uuid>:<number>`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotAnOwner;

impl fmt::Display for NotAnOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not an owner: expected <uuid>:<number>")
    }
}

impl std::error::Error for NotAnOwner {}

impl FromStr for OwnerId {
    type Err = NotAnOwner;

    fn from_str(text: &str) -> Result<Self, NotAnOwner> {
        let (uuid, number) = text.split_once(':').ok_or(NotAnOwner)?;
        let digits: String = uuid.chars().filter(|c| *c != '-').collect();
        let client =
            ClientId::from_bits(u128::from_str_radix(&digits, 16).map_err(|_| NotAnOwner)?);
        let number = number.parse().map_err(|_| NotAnOwner)?;
        let owner = OwnerId { client, number };
        if owner.to_string() == text {
            Ok(owner)
        } else {
            Err(NotAnOwner)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_reads_as_a_version_4_uuid_and_a_number() {
        let owner = OwnerId {
            client: ClientId::from_random(u128::MAX),
            number: 7,
        };
        assert_eq!(owner.to_string(), "ffffffff-ffff-4fff-bfff-ffffffffffff:7");
        assert_eq!(owner.to_string().parse(), Ok(owner));
    }

    #[test]
    fn an_owner_is_written_as_it_is_displayed() {
        for number in [0, 7, 10, 99, 12_345, u64::MAX] {
            let client = ClientId::from_random(0x1234_5678_9abc_def0_u128 << 64 | 42);
            let owner = OwnerId { client, number };
            let mut text = [0; OwnerId::MOST_BYTES];
            assert_eq!(owner.write_to(&mut text), owner.to_string().as_bytes());
        }
    }

    #[test]
    fn other_texts_are_no_owners() {
        for text in ["", "x:1", "ffffffff-ffff-4fff-bfff-ffffffffffff", "0:0"] {
            assert_eq!(text.parse::<OwnerId>(), Err(NotAnOwner), "{text}");
        }
    }
}
