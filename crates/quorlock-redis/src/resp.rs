//! Where a reply ends, and what it says: RESP2, as far as a server answers commands with it.

use redis::Value;

/// What cannot be the beginning of a reply, or is one that is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NoReply {
    /// No reply of a Redis server looks like this.
    Malformed,
    /// It is a record of TLS.
    Encrypted,
    /// It would take more memory than [`MOST`].
    TooLong,
    /// Arrays are nested more deeply than [`DEPTH`].
    TooDeep,
}

/// How deeply arrays may be nested: our scripts' replies are flat.
const DEPTH: usize = 8;

/// How many bytes of memory a reply may take: its texts, and what each of its elements takes as a value. An element of
/// four bytes on the wire takes more than ten times that in memory, so bytes on the wire are no bound.
const MOST: usize = 16 * 1024 * 1024;

/// How long a line may be: a length, a number, or the words of an error.
const MOST_LINE: usize = 64 * 1024;

/// Reads replies from packets that end anywhere. It keeps what it has read of a reply: no byte is looked at twice,
/// however many packets the reply comes in.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    /// Arrays whose elements are still to come, from the outermost to the innermost.
    open: Vec<OpenArray>,
    part: PartialElement,
    /// What the reply takes in memory, as far as it has said so.
    charged: usize,
    /// How many bytes were looked at for the end of a line, or copied.
    #[cfg(test)]
    scanned: usize,
}

#[derive(Debug)]
struct OpenArray {
    /// How many elements are still to come: at least one.
    left: usize,
    values: Vec<Value>,
}

/// What was read of an element that is not complete.
#[derive(Debug)]
enum PartialElement {
    /// Its first line.
    Line(Vec<u8>),
    /// A text, and how many bytes of it are still to come, the end of its line included.
    Text(Vec<u8>, usize),
}

impl Default for PartialElement {
    fn default() -> Self {
        PartialElement::Line(Vec::new())
    }
}

/// What a packet was good for.
#[derive(Debug, PartialEq)]
pub(crate) struct Decoded {
    /// The reply that it completes, if it completes one.
    pub(crate) reply: Option<Value>,
    /// How many bytes of it were used: all, unless it completes a reply.
    pub(crate) used: usize,
}

impl Decoder {
    /// Reads on, up to the end of a reply or of the packet.
    ///
    /// # Errors
    /// [`NoReply`], after which the decoder is of no use: where the next reply begins is not known.
    pub(crate) fn decode(&mut self, packet: &[u8]) -> Result<Decoded, NoReply> {
        let mut rest = packet;
        while !rest.is_empty() {
            let element = match &self.part {
                PartialElement::Line(_) => self.line(&mut rest)?,
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

    /// Reads the first line of an element; returns the element if that is all of it.
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
        // What is no Redis server is told so by its first byte: it may never send a line.
        match begun.first() {
            Some(kind) if b":$*+-".contains(kind) => {}
            kind => return Err(no_reply(kind)),
        }
        if begun.ends_with(b"\r\n") {
            return self.element(&begun);
        }
        self.part = PartialElement::Line(begun);
        Ok(None)
    }

    /// The element that a complete line begins, if that is all of it.
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
                    // A server's word alone takes no memory, only what it sends.
                    self.charge(length)?;
                    self.part = PartialElement::Text(Vec::new(), length + 2);
                    Ok(None)
                }
            },
            b'*' => match length(content)? {
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
            // Seldom, and with more to it: what an error says, the crate takes apart.
            b'+' | b'-' => {
                self.charge(content.len())?;
                let value = redis::parse_redis_value(line).map_err(|_| NoReply::Malformed)?;
                Ok(Some(value))
            }
            kind => Err(no_reply(Some(kind))),
        }
    }

    /// Reads a text; returns it if it is complete.
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

    /// Puts an element into its array, which may complete that, and so on; returns the reply if it is complete.
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

    /// Counts memory that the reply is going to take.
    fn charge(&mut self, bytes: usize) -> Result<(), NoReply> {
        self.charged = self.charged.saturating_add(bytes);
        if MOST < self.charged {
            return Err(NoReply::TooLong);
        }
        Ok(())
    }
}

/// What begins with this byte, and is no reply.
fn no_reply(kind: Option<&u8>) -> NoReply {
    match kind {
        // A server of TLS answers what it cannot decrypt with an alert.
        Some(0x15) => NoReply::Encrypted,
        _ => NoReply::Malformed,
    }
}

fn number(digits: &[u8]) -> Result<i64, NoReply> {
    let digits = std::str::from_utf8(digits).map_err(|_| NoReply::Malformed)?;
    digits.parse().map_err(|_| NoReply::Malformed)
}

/// A length, or `None` for the null that is written as -1.
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
