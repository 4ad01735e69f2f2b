//! Replies, and how they are written in RESP2 and RESP3.

use std::borrow::Cow;

use crate::number;

/// The version of the protocol that a connection speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Protocol {
    #[default]
    Resp2,
    Resp3,
}

/// A reply. RESP2 has no type for some replies, and writes them as other types.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Reply {
    Status(Cow<'static, [u8]>),
    /// An error. Its text begins with the code of the error.
    Error(Vec<u8>),
    Int(i64),
    Double(f64),
    Bulk(Vec<u8>),
    /// Text for people, which RESP3 marks as such.
    Text(String),
    Nil,
    NilArray,
    Array(Vec<Reply>),
    Map(Vec<(Reply, Reply)>),
    /// A message that is not the reply to a command.
    Push(Vec<Reply>),
}

impl Reply {
    pub(crate) const OK: Reply = Reply::Status(Cow::Borrowed(b"OK"));

    pub(crate) fn error(text: impl Into<String>) -> Self {
        Reply::Error(text.into().into_bytes())
    }

    pub(crate) fn bulk(text: impl AsRef<[u8]>) -> Self {
        Reply::Bulk(text.as_ref().to_vec())
    }

    /// Returns a count as an integer.
    pub(crate) fn count(count: usize) -> Self {
        Reply::Int(i64::try_from(count).unwrap_or(i64::MAX))
    }

    pub(crate) fn write(&self, protocol: Protocol, out: &mut Vec<u8>) {
        let is_new = protocol == Protocol::Resp3;
        match self {
            Reply::Status(text) => line(b'+', text, out),
            Reply::Error(text) => line(b'-', text, out),
            Reply::Int(number) => line(b':', number.to_string().as_bytes(), out),
            Reply::Double(number) if is_new => {
                line(b',', number::double(*number).as_bytes(), out);
            }
            Reply::Double(number) => bulk(b'$', number::double(*number).as_bytes(), out),
            Reply::Bulk(text) => bulk(b'$', text, out),
            Reply::Text(text) if is_new => bulk(b'=', format!("txt:{text}").as_bytes(), out),
            Reply::Text(text) => bulk(b'$', text.as_bytes(), out),
            Reply::Nil | Reply::NilArray if is_new => out.extend_from_slice(b"_\r\n"),
            Reply::Nil => out.extend_from_slice(b"$-1\r\n"),
            Reply::NilArray => out.extend_from_slice(b"*-1\r\n"),
            Reply::Array(replies) => all(b'*', replies, protocol, out),
            Reply::Push(replies) => all(if is_new { b'>' } else { b'*' }, replies, protocol, out),
            Reply::Map(pairs) => {
                let (kind, len) = if is_new {
                    (b'%', pairs.len())
                } else {
                    (b'*', 2 * pairs.len())
                };
                line(kind, len.to_string().as_bytes(), out);
                for (key, value) in pairs {
                    key.write(protocol, out);
                    value.write(protocol, out);
                }
            }
        }
    }
}

fn all(kind: u8, replies: &[Reply], protocol: Protocol, out: &mut Vec<u8>) {
    line(kind, replies.len().to_string().as_bytes(), out);
    for reply in replies {
        reply.write(protocol, out);
    }
}

/// Writes a line. Line ends in its text are replaced.
fn line(kind: u8, text: &[u8], out: &mut Vec<u8>) {
    out.push(kind);
    out.extend(text.iter().map(|byte| match byte {
        b'\r' | b'\n' => b' ',
        other => *other,
    }));
    out.extend_from_slice(b"\r\n");
}

fn bulk(kind: u8, text: &[u8], out: &mut Vec<u8>) {
    line(kind, text.len().to_string().as_bytes(), out);
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(reply: &Reply, protocol: Protocol) -> String {
        let mut out = Vec::new();
        reply.write(protocol, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_reply_is_written_in_the_words_of_its_protocol() {
        let pair = (Reply::bulk("a"), Reply::Double(1.5));
        for (reply, old, new) in [
            (Reply::OK, "+OK\r\n", "+OK\r\n"),
            (Reply::error("ERR a\r\nb"), "-ERR a  b\r\n", "-ERR a  b\r\n"),
            (Reply::Int(-7), ":-7\r\n", ":-7\r\n"),
            (Reply::Nil, "$-1\r\n", "_\r\n"),
            (Reply::NilArray, "*-1\r\n", "_\r\n"),
            (Reply::Text("hi".into()), "$2\r\nhi\r\n", "=6\r\ntxt:hi\r\n"),
            (
                Reply::Array(vec![Reply::Int(1), Reply::Nil]),
                "*2\r\n:1\r\n$-1\r\n",
                "*2\r\n:1\r\n_\r\n",
            ),
            (
                Reply::Map(vec![pair]),
                "*2\r\n$1\r\na\r\n$3\r\n1.5\r\n",
                "%1\r\n$1\r\na\r\n,1.5\r\n",
            ),
            (
                Reply::Push(vec![Reply::Int(1)]),
                "*1\r\n:1\r\n",
                ">1\r\n:1\r\n",
            ),
        ] {
            assert_eq!(written(&reply, Protocol::Resp2), old);
            assert_eq!(written(&reply, Protocol::Resp3), new);
        }
    }
}
