//! Decodes replies in RESP2, and in the part of RESP3 that a connection for wake-ups needs.

use redis::Value;

/// Why bytes are not decoded as a reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NoReply {
    /// No reply of a Redis server looks like this.
    Malformed,
    /// The bytes are a TLS record.
    Encrypted,
    /// The reply would take more memory than [`MOST`].
    TooLong,
    /// The reply has arrays nested more deeply than [`DEPTH`].
    TooDeep,
}

/// The maximum depth of nested arrays. The replies of our scripts are flat.
const DEPTH: usize = 8;

/// The maximum memory of a reply in bytes: its texts, and the size of each element as a value. An element of four bytes
/// on the wire takes more than ten times as much in memory, so the number of bytes on the wire is no bound.
const MOST: usize = 16 * 1024 * 1024;

/// The maximum length of a line in bytes: a length, a number, or an error text.
const MOST_LINE: usize = 64 * 1024;

/// Decodes replies from packets with arbitrary boundaries. It keeps the decoded part of a reply, so it reads each byte
/// once, however many packets a reply spans.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    /// Incomplete arrays, from the outermost to the innermost.
    open: Vec<OpenArray>,
    part: PartialElement,
    /// Memory of the reply in bytes, as far as its lengths are known.
    charged: usize,
    /// Number of bytes that were searched for the end of a line, or copied.
    #[cfg(test)]
    scanned: usize,
}

#[derive(Debug)]
struct OpenArray {
    /// Number of missing elements, at least one.
    left: usize,
    values: Vec<Value>,
}

/// The part of an incomplete element that was read.
#[derive(Debug)]
enum PartialElement {
    /// Part of its first line.
    Line(Vec<u8>),
    /// Part of a text, and the number of missing bytes, including its line end.
    Text(Vec<u8>, usize),
}

impl Default for PartialElement {
    fn default() -> Self {
        PartialElement::Line(Vec::new())
    }
}

/// The result of decoding a packet.
#[derive(Debug, PartialEq)]
pub(crate) struct Decoded {
    /// The reply that the packet completes, if it completes one.
    pub(crate) reply: Option<Value>,
    /// Number of bytes used: all, unless a reply was completed.
    pub(crate) used: usize,
}

impl Decoder {
    /// Decodes up to the end of a reply or of the packet.
    ///
    /// # Errors
    /// [`NoReply`]. The decoder is unusable afterwards, because it does not know where the next reply begins.
    pub(crate) fn decode(&mut self, packet: &[u8]) -> Result<Decoded, NoReply> {
        let mut rest = packet;
        while !rest.is_empty() {
            let element = match &self.part {
                PartialElement::Line(begun) => match short(rest) {
                    Some((value, used)) if begun.is_empty() => {
                        rest = rest.get(used..).unwrap_or_default();
                        #[cfg(test)]
                        {
                            self.scanned += used;
                        }
                        Some(value)
                    }
                    _ => self.line(&mut rest)?,
                },
                PartialElement::Text(..) => self.text(&mut rest)?,
            };
            if let Some(reply) = element.and_then(|element| self.close(element)) {
                self.charged = 0;
                return Ok(Decoded {
                    reply: Some(reply),
                    used: packet.len() - rest.len(),
                });
            }
        }
        Ok(Decoded {
            reply: None,
            used: packet.len(),
        })
    }

    /// Reads the first line of an element. Returns the element if it has no other line.
    fn line(&mut self, rest: &mut &[u8]) -> Result<Option<Value>, NoReply> {
        let PartialElement::Line(mut begun) = std::mem::take(&mut self.part) else {
            return Ok(None);
        };
        let end = rest.iter().position(|byte| *byte == b'\n');
        let (line, after) = rest.split_at(end.map_or(rest.len(), |end| end + 1));
        *rest = after;
        #[cfg(test)]
        {
            self.scanned += line.len();
        }
        if MOST_LINE < begun.len() + line.len() {
            return Err(NoReply::TooLong);
        }
        let is_first = begun.is_empty();
        if is_first && line.ends_with(b"\r\n") {
            return self.element(line);
        }
        begun.extend_from_slice(line);
        // A server that is not Redis is recognized by its first byte, because it may never send a line end.
        match begun.first() {
            Some(kind) if b":$*+->%_".contains(kind) => {}
            kind => return Err(no_reply(kind)),
        }
        if begun.ends_with(b"\r\n") {
            return self.element(&begun);
        }
        self.part = PartialElement::Line(begun);
        Ok(None)
    }

    /// Returns the element of a complete line, or prepares for the rest of the element.
    fn element(&mut self, line: &[u8]) -> Result<Option<Value>, NoReply> {
        let Some((kind, content)) = line.split_first() else {
            return Err(NoReply::Malformed);
        };
        let content = content.strip_suffix(b"\r\n").ok_or(NoReply::Malformed)?;
        match kind {
            b':' => Ok(Some(Value::Int(number(content)?))),
            b'$' => match length(content)? {
                None => Ok(Some(Value::Nil)),
                Some(length) => {
                    // An announced length allocates nothing; only received bytes do.
                    self.charge(length)?;
                    self.part = PartialElement::Text(Vec::new(), length + 2);
                    Ok(None)
                }
            },
            // In RESP3: a pushed message; a map, as keys and values in turn; nothing.
            b'_' if content.is_empty() => Ok(Some(Value::Nil)),
            b'*' | b'>' | b'%' => match length(content)?.map(|many| match kind {
                b'%' => many.saturating_mul(2),
                _ => many,
            }) {
                None => Ok(Some(Value::Nil)),
                Some(0) if self.open.len() < DEPTH => Ok(Some(Value::Array(Vec::new()))),
                Some(left) => {
                    if DEPTH <= self.open.len() {
                        return Err(NoReply::TooDeep);
                    }
                    self.charge(left.saturating_mul(size_of::<Value>()))?;
                    let values = Vec::with_capacity(left.min(16));
                    self.open.push(OpenArray { left, values });
                    Ok(None)
                }
            },
            // A command of a transaction that waits for its end was taken, too.
            b'+' if content == b"OK" || content == b"QUEUED" => Ok(Some(Value::Okay)),
            // These are rare and more complicated, so the `redis` crate parses them.
            b'+' | b'-' => {
                self.charge(content.len())?;
                let value = redis::parse_redis_value(line).map_err(|_| NoReply::Malformed)?;
                Ok(Some(value))
            }
            kind => Err(no_reply(Some(kind))),
        }
    }

    /// Reads a text. Returns it if it is complete.
    fn text(&mut self, rest: &mut &[u8]) -> Result<Option<Value>, NoReply> {
        let PartialElement::Text(text, left) = &mut self.part else {
            return Ok(None);
        };
        let (now, after) = rest.split_at(rest.len().min(*left));
        *rest = after;
        #[cfg(test)]
        {
            self.scanned += now.len();
        }
        text.extend_from_slice(now);
        *left -= now.len();
        if 0 < *left {
            return Ok(None);
        }
        if !text.ends_with(b"\r\n") {
            return Err(NoReply::Malformed);
        }
        let mut text = std::mem::take(text);
        text.truncate(text.len() - 2);
        self.part = PartialElement::default();
        Ok(Some(Value::BulkString(text)))
    }

    /// Adds an element to its array, which may complete that array, and so on. Returns the reply if it is complete.
    fn close(&mut self, mut element: Value) -> Option<Value> {
        while let Some(array) = self.open.last_mut() {
            array.values.push(element);
            array.left -= 1;
            if 0 < array.left {
                return None;
            }
            let array = self.open.pop()?;
            element = Value::Array(array.values);
        }
        Some(element)
    }

    /// Counts memory that the reply will take.
    fn charge(&mut self, bytes: usize) -> Result<(), NoReply> {
        self.charged = self.charged.saturating_add(bytes);
        if MOST < self.charged {
            return Err(NoReply::TooLong);
        }
        Ok(())
    }
}

/// Returns what the packet begins with, and its length, if it is one of the replies that most are: a number that is not negative, and that
/// a command was executed or waits for the end of its transaction.
fn short(packet: &[u8]) -> Option<(Value, usize)> {
    match packet {
        [b'+', b'O', b'K', b'\r', b'\n', ..] => Some((Value::Okay, 5)),
        [b'+', word @ ..] if word.starts_with(b"QUEUED\r\n") => Some((Value::Okay, 9)),
        [b':', digits @ ..] => {
            let mut number = 0;
            for (at, byte) in digits.iter().enumerate().take(MOST_DIGITS + 1) {
                match byte {
                    b'0'..=b'9' => number = 10 * number + i64::from(byte - b'0'),
                    b'\r' if 0 < at && digits.get(at + 1) == Some(&b'\n') => {
                        return Some((Value::Int(number), at + 3));
                    }
                    _ => return None,
                }
            }
            None
        }
        _ => None,
    }
}

/// The most digits that any number fits which has them.
const MOST_DIGITS: usize = 17;

/// Returns the error for bytes that begin with this one.
fn no_reply(kind: Option<&u8>) -> NoReply {
    match kind {
        // A TLS server answers data that it cannot decrypt with an alert.
        Some(0x15) => NoReply::Encrypted,
        _ => NoReply::Malformed,
    }
}

fn number(digits: &[u8]) -> Result<i64, NoReply> {
    let digits = std::str::from_utf8(digits).map_err(|_| NoReply::Malformed)?;
    digits.parse().map_err(|_| NoReply::Malformed)
}

/// Parses a length, or `None` for the null, which is written as -1.
fn length(digits: &[u8]) -> Result<Option<usize>, NoReply> {
    match number(digits)? {
        -1 => Ok(None),
        length => usize::try_from(length)
            .map(Some)
            .map_err(|_| NoReply::Malformed),
    }
}

#[cfg(test)]
mod tests;
