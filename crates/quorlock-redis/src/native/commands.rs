//! Writes commands one behind the other, as they are sent. (`redis::Cmd` would do, but it allocates for each command and key:
//! 64 callers then lock and free a tenth fewer names in the same time.)

use quorlock_core::owner::OwnerId;

use crate::key::Derived;

/// Commands that are sent together.
pub(super) struct Commands {
    bytes: Vec<u8>,
}

impl Commands {
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Commands {
            bytes: Vec::with_capacity(bytes),
        }
    }

    /// Begins a command with this number of arguments.
    pub(super) fn begin(&mut self, verb: &str, args: u64) -> &mut Self {
        self.line(b'*', args + 1);
        self.arg(verb.as_bytes())
    }

    pub(super) fn arg(&mut self, arg: &[u8]) -> &mut Self {
        self.pieces(&[arg])
    }

    pub(super) fn key(&mut self, key: Derived<'_>) -> &mut Self {
        self.pieces(&key.pieces())
    }

    pub(super) fn owner(&mut self, owner: OwnerId) -> &mut Self {
        let mut text = [0; OwnerId::MOST_BYTES];
        self.arg(owner.write_to(&mut text))
    }

    pub(super) fn number(&mut self, number: u64) -> &mut Self {
        let mut text = [0; DIGITS];
        self.arg(digits(number, &mut text))
    }

    /// The number of bytes so far.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Writes an argument that consists of these pieces.
    fn pieces(&mut self, pieces: &[&[u8]]) -> &mut Self {
        let length: usize = pieces.iter().map(|piece| piece.len()).sum();
        // At once, and not for each piece: the length, the bytes, and the ends of both lines.
        self.bytes.reserve(1 + DIGITS + 2 + length + 2);
        self.line(b'$', length as u64);
        for piece in pieces {
            self.bytes.extend_from_slice(piece);
        }
        self.bytes.extend_from_slice(b"\r\n");
        self
    }

    fn line(&mut self, kind: u8, number: u64) {
        let tens = (number / 10) as u8;
        match number {
            0..10 => self
                .bytes
                .extend_from_slice(&[kind, b'0' + number as u8, b'\r', b'\n']),
            10..100 => {
                let ones = number as u8 - 10 * tens;
                self.bytes
                    .extend_from_slice(&[kind, b'0' + tens, b'0' + ones, b'\r', b'\n']);
            }
            _ => {
                let mut text = [0; DIGITS];
                self.bytes.push(kind);
                self.bytes.extend_from_slice(digits(number, &mut text));
                self.bytes.extend_from_slice(b"\r\n");
            }
        }
    }
}

/// The most digits of a number.
pub(super) const DIGITS: usize = 20;

/// Writes a number, from its last digit to its first, and returns its digits.
pub(super) fn digits(number: u64, text: &mut [u8; DIGITS]) -> &[u8] {
    let (mut at, mut rest) = (text.len(), number);
    for place in text.iter_mut().rev() {
        *place = b'0' + (rest % 10) as u8;
        at -= 1;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    text.get(at..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use quorlock_core::name::Name;

    use super::*;
    use crate::key;

    #[test]
    fn commands_are_written_as_the_redis_crate_writes_them() {
        for number in [0, 9, 10, 30_000, u64::MAX] {
            let mut commands = Commands::with_capacity(0);
            commands
                .begin("SET", 2)
                .key(key::token(&Name::new("a").unwrap()))
                .number(number);
            commands.begin("GET", 1).arg(b"{b}");
            let mut expected = redis::cmd("SET")
                .arg("redisson_lock_token:{a}")
                .arg(number)
                .get_packed_command();
            expected.extend(redis::cmd("GET").arg("{b}").get_packed_command());
            assert_eq!(commands.into_bytes(), expected);
        }
    }
}
