//! Where a reply ends, and what it says: RESP2, as far as a server answers commands with it.

use redis::Value;

/// What cannot be the beginning of a reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NoReply;

/// How deeply arrays may be nested: our scripts' replies are flat.
const DEPTH: u8 = 8;

/// The first reply in `bytes` and its length; `None` while it is not complete.
///
/// # Errors
/// [`NoReply`] when no reply begins like this.
pub(crate) fn decode(bytes: &[u8]) -> Result<Option<(Value, usize)>, NoReply> {
    decode_nested(bytes, DEPTH)
}

fn decode_nested(bytes: &[u8], depth: u8) -> Result<Option<(Value, usize)>, NoReply> {
    let Some((kind, rest)) = bytes.split_first() else {
        return Ok(None);
    };
    if !b":$*+-".contains(kind) {
        return Err(NoReply);
    }
    let Some(line) = line(rest) else {
        return Ok(None);
    };
    let end = 1 + line.len() + 2;
    match kind {
        b':' => Ok(Some((Value::Int(number(line)?), end))),
        b'$' => bulk(bytes, number(line)?, end),
        b'*' => array(
            bytes,
            number(line)?,
            end,
            depth.checked_sub(1).ok_or(NoReply)?,
        ),
        // Seldom, and with more to it: what an error says, the crate takes apart.
        b'+' | b'-' => {
            let text = bytes.get(..end).ok_or(NoReply)?;
            let value = redis::parse_redis_value(text).map_err(|_| NoReply)?;
            Ok(Some((value, end)))
        }
        _ => Err(NoReply),
    }
}

/// Up to the end of the line, without it.
fn line(bytes: &[u8]) -> Option<&[u8]> {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
    bytes.get(..end)
}

fn number(digits: &[u8]) -> Result<i64, NoReply> {
    let digits = std::str::from_utf8(digits).map_err(|_| NoReply)?;
    digits.parse().map_err(|_| NoReply)
}

fn bulk(bytes: &[u8], len: i64, begin: usize) -> Result<Option<(Value, usize)>, NoReply> {
    if len == -1 {
        return Ok(Some((Value::Nil, begin)));
    }
    let len = usize::try_from(len).map_err(|_| NoReply)?;
    let end = begin.checked_add(len).ok_or(NoReply)?;
    let Some(text) = bytes.get(begin..end) else {
        return Ok(None);
    };
    match bytes.get(end..).unwrap_or_default() {
        [b'\r', b'\n', ..] => Ok(Some((Value::BulkString(text.to_vec()), end + 2))),
        [] | [b'\r'] => Ok(None),
        _ => Err(NoReply),
    }
}

fn array(
    bytes: &[u8],
    len: i64,
    begin: usize,
    depth: u8,
) -> Result<Option<(Value, usize)>, NoReply> {
    if len == -1 {
        return Ok(Some((Value::Nil, begin)));
    }
    let len = usize::try_from(len).map_err(|_| NoReply)?;
    let mut end = begin;
    // What a server claims is not believed: an element has four bytes at least.
    let mut values = Vec::with_capacity(len.min(bytes.len() / 4));
    for _ in 0..len {
        let rest = bytes.get(end..).unwrap_or_default();
        let Some((value, len)) = decode_nested(rest, depth)? else {
            return Ok(None);
        };
        end += len;
        values.push(value);
    }
    Ok(Some((Value::Array(values), end)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a server may answer to what we ask.
    const REPLIES: [&str; 12] = [
        "+OK\r\n",
        "+\r\n",
        ":0\r\n",
        ":-2\r\n",
        ":9223372036854775807\r\n",
        "$-1\r\n",
        "$0\r\n\r\n",
        "$5\r\nfa\r\nr\r\n",
        "*-1\r\n",
        "*0\r\n",
        "*2\r\n:1\r\n:1767225600000\r\n",
        "*3\r\n$4\r\nmode\r\n*2\r\n:1\r\n$-1\r\n+OK\r\n",
    ];

    #[test]
    fn replies_read_as_the_redis_crate_reads_them() {
        let errors = [
            "-NOSCRIPT No matching script. Please use EVAL.\r\n",
            "-ERR wrong\r\n",
            "*2\r\n:1\r\n-WRONGTYPE it is a list\r\n",
        ];
        for reply in REPLIES.into_iter().chain(errors) {
            let (value, len) = decode(reply.as_bytes()).unwrap().unwrap();
            assert_eq!(value, redis::parse_redis_value(reply.as_bytes()).unwrap());
            assert_eq!(len, reply.len());
        }
    }

    #[test]
    fn a_reply_that_is_cut_anywhere_is_waited_for() {
        for reply in REPLIES {
            for cut in 0..reply.len() {
                let beginning = &reply.as_bytes()[..cut];
                assert_eq!(decode(beginning), Ok(None), "{reply:?} up to {cut}");
            }
        }
    }

    #[test]
    fn what_follows_a_reply_is_left() {
        for reply in REPLIES {
            let both = format!("{reply}:7\r\n");
            let (_, len) = decode(both.as_bytes()).unwrap().unwrap();
            assert_eq!(len, reply.len());
        }
    }

    #[test]
    fn what_is_no_reply_is_refused() {
        let deep = "*1\r\n".repeat(100) + ":1\r\n";
        for text in [
            "HTTP/1.1 400 Bad Request\r\n",
            "\r\n",
            ":\r\n",
            ":1x\r\n",
            "$-2\r\n",
            "$99999999999999999999\r\n",
            "$9223372036854775807\r\n",
            "$1\r\nab\r\n",
            "*-2\r\n",
            "*1\r\n!\r\n",
            "%1\r\n+a\r\n:1\r\n",
            &deep,
        ] {
            let decoded = decode(text.as_bytes());
            assert!(
                decoded == Err(NoReply) || (text.starts_with("$9") && decoded == Ok(None)),
                "{text:?}: {decoded:?}"
            );
        }
    }
}
