//! The text with which a hold passes from one process to another.

use std::fmt::{self, Write as _};
use std::str::FromStr;
use std::time::Duration;

use quorlock_core::fencing::Token;
use quorlock_core::lease::Lease;
use quorlock_core::message::Mode;
use quorlock_core::name::Name;
use quorlock_core::owner::OwnerId;

use crate::error::TicketError;

/// A held lock on its way to another process: see [`Guard::hand_over`](crate::Guard::hand_over) and
/// [`Locks::adopt`](crate::Locks::adopt).
///
/// Its text, by [`Display`](fmt::Display) and [`FromStr`], has only letters, digits and `-_.%~`, so it fits into a header, an
/// address or a variable. It names the locks, and any client that has it can adopt them: treat it as a secret of your services. Its
/// `Debug` form shows the names only.
#[derive(Clone, PartialEq, Eq)]
pub struct Ticket {
    pub(crate) owner: OwnerId,
    pub(crate) lease: Lease,
    pub(crate) is_watched: bool,
    pub(crate) parts: Vec<TicketPart>,
}

/// One name of a ticket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TicketPart {
    /// The name without the key prefix.
    pub(crate) name: Name,
    pub(crate) mode: Mode,
    pub(crate) token: Token,
}

/// The version of the text.
const VERSION: &str = "q1";

impl Ticket {
    /// Returns the names, without the key prefix.
    pub fn names(&self) -> impl Iterator<Item = &Name> {
        self.parts.iter().map(|part| &part.name)
    }
}

/// Writes `q1.<owner>.<number>.<lease in ms>.<w or f>`, `~<mode><token>.<name>` for each name, and `~<checksum>`.
impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.write_to(&mut text)?;
        write!(f, "{text}~{:08x}", checksum(&text))
    }
}

impl Ticket {
    fn write_to(&self, text: &mut String) -> fmt::Result {
        let OwnerId { client, number } = self.owner;
        let watched = if self.is_watched { 'w' } else { 'f' };
        let lease = self.lease.millis();
        write!(text, "{VERSION}.{client}.{number}.{lease}.{watched}")?;
        for part in &self.parts {
            write!(text, "~{}{}.", letter(part.mode), part.token)?;
            for &byte in part.name.as_bytes() {
                match byte {
                    b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => {
                        text.push(char::from(byte));
                    }
                    _ => write!(text, "%{byte:02X}")?,
                }
            }
        }
        Ok(())
    }
}

/// Returns the 32-bit FNV-1a hash of a text. A ticket that was cut off would lock fewer names, or others.
fn checksum(text: &str) -> u32 {
    let bytes = text.bytes();
    bytes.fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

impl FromStr for Ticket {
    type Err = TicketError;

    fn from_str(text: &str) -> Result<Self, TicketError> {
        const CUT: TicketError = TicketError("it was cut off or changed");
        let (text, sum) = text.rsplit_once('~').ok_or(CUT)?;
        if format!("{:08x}", checksum(text)) != sum {
            return Err(CUT);
        }
        let mut parts = text.split('~');
        let head = parts.next().unwrap_or_default();
        let rest = head
            .strip_prefix(VERSION)
            .and_then(|rest| rest.strip_prefix('.'));
        let rest = rest.ok_or(TicketError(
            "it does not begin with q1, the version of tickets",
        ))?;
        let mut fields = rest.split('.');
        let mut field = |what| fields.next().ok_or(TicketError(what));
        let owner = format!(
            "{}:{}",
            field("a part of it is missing")?,
            field("a part of it is missing")?
        );
        let owner = owner
            .parse()
            .map_err(|_| TicketError("its owner is invalid"))?;
        let lease = number(field("a part of it is missing")?).and_then(|millis| {
            Lease::new(Duration::from_millis(millis))
                .map_err(|_| TicketError("its lease is too short"))
        })?;
        let is_watched = match field("a part of it is missing")? {
            "w" => true,
            "f" => false,
            _ => return Err(TicketError("it does not say whether the lease is renewed")),
        };
        if fields.next().is_some() {
            return Err(TicketError("something is added to it"));
        }
        let parts = parts.map(part).collect::<Result<_, _>>()?;
        Ok(Ticket {
            owner,
            lease,
            is_watched,
            parts,
        })
    }
}

fn part(text: &str) -> Result<TicketPart, TicketError> {
    const INVALID: TicketError = TicketError("a name is invalid");
    let (head, name) = text.split_once('.').ok_or(INVALID)?;
    let mut rest = head.chars();
    let mode = match rest.next() {
        Some('p') => Mode::Plain,
        Some('q') => Mode::Fair,
        Some('x') => Mode::Write,
        _ => return Err(INVALID),
    };
    Ok(TicketPart {
        name: Name::new(decoded(name).ok_or(INVALID)?).map_err(|_| INVALID)?,
        mode,
        token: Token(number(rest.as_str())?),
    })
}

fn letter(mode: Mode) -> char {
    match mode {
        Mode::Plain => 'p',
        Mode::Fair => 'q',
        Mode::Write => 'x',
        Mode::Read => unreachable!("BUG: a read hold was handed over"),
    }
}

/// Reads a number below 2^53 - 1, as tokens and leases are: the next token must be below 2^53.
fn number(text: &str) -> Result<u64, TicketError> {
    let is_decimal = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| is_decimal);
    let number = number.filter(|number: &u64| *number < (1 << 53) - 1);
    number.ok_or(TicketError("a number is invalid"))
}

/// Reads bytes of which some are written as `%` and two hexadecimal digits.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let (byte, tail) = match (first, tail) {
            (b'%', [high, low, tail @ ..]) => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                let byte = digit(*high)? * 16 + digit(*low)?;
                (u8::try_from(byte).ok()?, tail)
            }
            (b'%', _) => return None,
            (other, tail) => (*other, tail),
        };
        bytes.push(byte);
        rest = tail;
    }
    Some(bytes)
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.names().collect();
        f.debug_struct("Ticket")
            .field("names", &names)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use quorlock_core::owner::ClientId;

    use super::*;

    fn ticket(name: &[u8], mode: Mode, token: u64) -> Ticket {
        Ticket {
            owner: OwnerId {
                client: ClientId::from_random(42),
                number: 7,
            },
            lease: Lease::new(Duration::from_secs(30)).unwrap(),
            is_watched: true,
            parts: vec![TicketPart {
                name: Name::new(name).unwrap(),
                mode,
                token: Token(token),
            }],
        }
    }

    #[test]
    fn a_ticket_reads_as_one_word() {
        let text = ticket(b"orders/42 \xc3\xa9", Mode::Plain, 12).to_string();
        let end = ".7.30000.w~p12.orders%2F42%20%C3%A9~";
        let begin = format!("q1.00000000-0000-4000-8000-00000000002a{end}");
        assert_eq!(text.strip_prefix(&begin).map(str::len), Some(8), "{text}");
    }

    #[test]
    fn other_texts_are_no_tickets() {
        let good = ticket(b"x", Mode::Write, 12).to_string();
        assert!(good.parse::<Ticket>().is_ok());
        let cut = (0..good.len()).map(|end| good[..end].to_owned());
        let (text, sum) = good.rsplit_once('~').unwrap();
        let changed = [
            text.replace("q1", "q2"),
            text.replace(".w", ".y"),
            text.replace(".w", ".w.w"),
            text.replace(".w", ""),
            text.replace("30000", "1"),
            text.replace("x12", "r12"),
            text.replace("x12", "x9007199254740991"),
            text.replace("x12", "x+12"),
            text.replace("-4", "-g"),
            format!("{text}~"),
            format!("{text}%2"),
            format!("{text}%zz"),
            format!("{text}%00"),
            format!(" {text}"),
        ];
        let summed = changed
            .iter()
            .map(|text| format!("{text}~{:08x}", checksum(text)));
        let unsummed = changed.iter().map(|text| format!("{text}~{sum}"));
        for text in cut.chain(summed).chain(unsummed) {
            let error = text.parse::<Ticket>().unwrap_err().to_string();
            assert!(error.contains("ticket"), "{text}: {error}");
        }
    }

    #[test]
    fn a_ticket_is_read_as_it_is_written() {
        let bytes: Vec<u8> = (1..=u8::MAX).collect();
        for name in [&bytes[..], b"a", b"%", b"~p1.a", "caf\u{e9}".as_bytes()] {
            for mode in [Mode::Plain, Mode::Fair, Mode::Write] {
                for token in [0, 1, (1 << 53) - 2] {
                    let mut before = ticket(name, mode, token);
                    before.parts.extend(ticket(b"b", mode, token).parts);
                    assert_eq!(before.to_string().parse(), Ok(before));
                }
            }
        }
    }
}
