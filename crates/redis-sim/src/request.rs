//! Requests of clients: arrays of strings, or lines that a person typed.

/// A command and its arguments.
pub(crate) type Words = Vec<Vec<u8>>;

/// The result of parsing the beginning of some bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Parsed {
    /// The request is not complete yet.
    Incomplete,
    /// A request, which may have no words, and its length in bytes.
    Request(Words, usize),
    /// The bytes are not a request, for this reason. The connection cannot be used any more.
    Broken(String),
}

/// The longest line, in bytes.
const LONGEST_LINE: usize = 64 * 1024;
/// The longest word, in bytes.
const LONGEST_WORD: i64 = 512 * 1024 * 1024;
/// The largest number of words in a request.
const MOST_WORDS: i64 = i32::MAX as i64;
/// The largest number of words before the client has logged in.
const STRANGERS_WORDS: i64 = 10;
const STRANGERS_WORD: i64 = 16_384;

/// Whether a client has presented the password, if there is one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Trust {
    Known,
    Stranger,
}

pub(crate) fn parse(bytes: &[u8], trust: Trust) -> Parsed {
    match bytes.split_first() {
        None => Parsed::Incomplete,
        Some((b'*', rest)) => match array(rest, trust) {
            Ok(Some((words, used))) => Parsed::Request(words, 1 + used),
            Ok(None) => Parsed::Incomplete,
            Err(what) => Parsed::Broken(what),
        },
        Some(_) => typed(bytes),
    }
}

type Partial<T> = Result<Option<T>, String>;

fn array(bytes: &[u8], trust: Trust) -> Partial<(Words, usize)> {
    let Some((count, mut at)) = header(bytes, "mbulk count")? else {
        return Ok(None);
    };
    let count = count.filter(|count| *count <= MOST_WORDS);
    let count = count.ok_or("invalid multibulk length")?;
    if trust == Trust::Stranger && STRANGERS_WORDS < count {
        return Err("unauthenticated multibulk length".into());
    }
    let mut words = Vec::new();
    for _ in 0..count {
        let rest = bytes.get(at..).unwrap_or_default();
        let Some((word, used)) = word(rest, trust)? else {
            return Ok(None);
        };
        words.push(word);
        at += used;
    }
    Ok(Some((words, at)))
}

fn word(bytes: &[u8], trust: Trust) -> Partial<(Vec<u8>, usize)> {
    let Some((kind, rest)) = bytes.split_first() else {
        return Ok(None);
    };
    if *kind != b'$' {
        // Like Redis, reports the error only once the line is complete.
        let Some(_) = header(bytes, "bulk count")? else {
            return Ok(None);
        };
        return Err(format!("expected '$', got '{}'", char::from(*kind)));
    }
    let Some((len, head)) = header(rest, "bulk count")? else {
        return Ok(None);
    };
    let len = len.filter(|len| (0..=LONGEST_WORD).contains(len));
    let len = len.ok_or("invalid bulk length")?;
    if trust == Trust::Stranger && STRANGERS_WORD < len {
        return Err("unauthenticated bulk length".into());
    }
    let begin = 1 + head;
    let end = begin + usize::try_from(len).unwrap_or(0);
    if bytes.len() < end + 2 {
        return Ok(None);
    }
    let word = bytes.get(begin..end).unwrap_or_default().to_vec();
    Ok(Some((word, end + 2)))
}

/// Parses a number up to the end of its line. Returns the number, or `None` if it is invalid, and where the next line
/// begins.
fn header(bytes: &[u8], what: &str) -> Partial<(Option<i64>, usize)> {
    let Some(end) = bytes.iter().position(|byte| *byte == b'\r') else {
        if LONGEST_LINE < bytes.len() {
            return Err(format!("too big {what} string"));
        }
        return Ok(None);
    };
    if bytes.len() < end + 2 {
        return Ok(None);
    }
    let digits = bytes.get(..end).unwrap_or_default();
    Ok(Some((crate::number::parse_int(digits), end + 2)))
}

/// Parses a line as a person types it.
fn typed(bytes: &[u8]) -> Parsed {
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
        if LONGEST_LINE < bytes.len() {
            return Parsed::Broken("too big inline request".into());
        }
        return Parsed::Incomplete;
    };
    let line = bytes.get(..end).unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    match split(line) {
        Some(words) => Parsed::Request(words, end + 1),
        None => Parsed::Broken("unbalanced quotes in request".into()),
    }
}

/// Splits a line into words at blanks; a word in quotes may contain blanks. Returns `None` if a quote is not closed, or
/// is closed in the middle of a word.
fn split(mut line: &[u8]) -> Option<Words> {
    let mut words = Vec::new();
    loop {
        line = line.trim_ascii_start();
        let Some(first) = line.first() else {
            return Some(words);
        };
        let (word, rest) = match first {
            b'"' | b'\'' => quoted(line.get(1..)?, *first)?,
            _ => {
                let end = line
                    .iter()
                    .position(|byte| byte.is_ascii_whitespace() || b"\"'".contains(byte));
                let (word, rest) = line.split_at(end.unwrap_or(line.len()));
                // A word may continue in quotes.
                match rest.first() {
                    Some(quote @ (b'"' | b'\'')) => {
                        let (more, rest) = quoted(rest.get(1..)?, *quote)?;
                        ([word, &more].concat(), rest)
                    }
                    _ => (word.to_vec(), rest),
                }
            }
        };
        words.push(word);
        line = rest;
    }
}

/// Parses up to the closing quote, which a blank must follow.
fn quoted(mut line: &[u8], quote: u8) -> Option<(Vec<u8>, &[u8])> {
    let mut word = Vec::new();
    loop {
        line = match line {
            [] => return None,
            [b'\\', b'x', high, low, rest @ ..]
                if quote == b'"' && high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                let digit = |digit: &u8| char::from(*digit).to_digit(16);
                let byte = 16 * digit(high)? + digit(low)?;
                word.push(u8::try_from(byte).ok()?);
                rest
            }
            [b'\\', escaped, rest @ ..] if quote == b'"' => {
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => *other,
                });
                rest
            }
            [b'\\', b'\'', rest @ ..] if quote == b'\'' => {
                word.push(b'\'');
                rest
            }
            [end, rest @ ..] if *end == quote => {
                let is_closed = rest.first().is_none_or(u8::is_ascii_whitespace);
                return is_closed.then_some((word, rest));
            }
            [byte, rest @ ..] => {
                word.push(*byte);
                rest
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Words {
        words.iter().map(|word| word.as_bytes().to_vec()).collect()
    }

    #[test]
    fn a_request_is_read_wherever_it_is_cut() {
        let (one, two) = ("*2\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\n", "PING\r\n");
        let both = format!("{one}{two}");
        for cut in 0..one.len() {
            assert_eq!(
                parse(&both.as_bytes()[..cut], Trust::Known),
                Parsed::Incomplete
            );
        }
        let request = Parsed::Request(words(&["GET", "a\r\nb"]), one.len());
        assert_eq!(parse(both.as_bytes(), Trust::Known), request);
    }

    #[test]
    fn a_line_is_split_into_words() {
        for (line, expected) in [
            ("\r\n", &[][..]),
            ("  set  a\t1 \r\n", &["set", "a", "1"]),
            (
                "set a \"x \\\" \\x41\\n\" 'it\\'s'\n",
                &["set", "a", "x \" A\n", "it's"],
            ),
            ("set a b\"c d\"\n", &["set", "a", "bc d"]),
        ] {
            assert_eq!(
                parse(line.as_bytes(), Trust::Known),
                Parsed::Request(words(expected), line.len())
            );
        }
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for (bytes, what) in [
            ("*x\r\n", "invalid multibulk length"),
            ("*1\r\n:1\r\n", "expected '$', got ':'"),
            ("*1\r\n$-1\r\n", "invalid bulk length"),
            ("*1\r\n$999999999999\r\n", "invalid bulk length"),
            ("set a \"b\r\n", "unbalanced quotes in request"),
            ("set a \"b\"c\r\n", "unbalanced quotes in request"),
        ] {
            assert_eq!(
                parse(bytes.as_bytes(), Trust::Known),
                Parsed::Broken(what.into())
            );
        }
        let long = "*11\r\n";
        assert_eq!(parse(long.as_bytes(), Trust::Known), Parsed::Incomplete);
        let refused = Parsed::Broken("unauthenticated multibulk length".into());
        assert_eq!(parse(long.as_bytes(), Trust::Stranger), refused);
    }
}
