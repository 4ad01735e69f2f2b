//! Requests and replies as bytes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use quorlock_testbed::wait::BOUND;

/// The replies of a server, one after another.
pub(super) struct Replies(BufReader<TcpStream>);

/// A reply, with the server's time before and after the request, in microseconds.
pub(super) struct Timed {
    pub(super) reply: Vec<u8>,
    pub(super) before: u64,
    pub(super) after: u64,
}

impl Replies {
    /// Connects to the server on this port of the loopback interface. Interrupted calls are repeated, because a machine
    /// that wakes from sleep interrupts all calls.
    pub(super) fn connect(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("the server is there");
        stream.set_nodelay(true).expect("an option");
        stream.set_read_timeout(Some(BOUND)).expect("an option");
        Replies(BufReader::new(stream))
    }

    /// Sends a request and returns the unparsed reply.
    pub(super) fn ask(&mut self, words: &[&str]) -> Vec<u8> {
        self.send(&request(words));
        self.next()
    }

    /// Sends a request in a transaction that also reads the time before and after it.
    pub(super) fn ask_timed(&mut self, asked: &[u8]) -> Timed {
        let (multi, time, exec) = (request(&["MULTI"]), request(&["TIME"]), request(&["EXEC"]));
        self.send(&[&multi, &time, asked, &time, &exec].concat());
        self.next();
        self.next();
        let refused = Some(self.next()).filter(|said| said.starts_with(b"-"));
        self.next();
        if let Some(reply) = refused {
            // Nothing was executed, because this request is not a command.
            assert!(self.next().starts_with(b"-EXECABORT"));
            let (before, after) = (0, 0);
            return Timed {
                reply,
                before,
                after,
            };
        }
        assert_eq!(self.line(), b"*3\r\n", "three were queued");
        let before = self.time();
        let reply = self.next();
        let after = self.time();
        Timed {
            reply,
            before,
            after,
        }
    }

    /// Returns the reply of a script.
    pub(super) fn eval(&mut self, script: &str) -> Vec<u8> {
        self.ask(&["EVAL", script, "0"])
    }

    /// Returns the text of a script's reply.
    pub(super) fn text(&mut self, script: &str) -> Vec<u8> {
        let reply = self.eval(script);
        let begin = reply
            .iter()
            .position(|byte| *byte == b'\n')
            .expect("a head")
            + 1;
        reply[begin..reply.len() - 2].to_vec()
    }

    pub(super) fn read_exactly(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.0
            .read_exact(&mut bytes)
            .expect("the server says as much as expected");
        bytes
    }

    fn send(&mut self, bytes: &[u8]) {
        self.0
            .get_mut()
            .write_all(bytes)
            .expect("the server listens");
    }

    /// Reads two numbers: seconds and microseconds.
    fn time(&mut self) -> u64 {
        let said = String::from_utf8(self.next()).expect("digits");
        let numbers: Vec<u64> = said
            .split("\r\n")
            .skip(2)
            .step_by(2)
            .flat_map(str::parse)
            .collect();
        match numbers[..] {
            [secs, micros] => 1_000_000 * secs + micros,
            _ => panic!("no time: {said:?}"),
        }
    }

    fn line(&mut self) -> Vec<u8> {
        let mut line = Vec::new();
        self.0
            .read_until(b'\n', &mut line)
            .expect("the server answers");
        assert!(line.ends_with(b"\r\n"), "the server closed the connection");
        line
    }

    /// Reads one complete reply without parsing it.
    pub(super) fn next(&mut self) -> Vec<u8> {
        let mut reply = self.line();
        let kind = reply[0];
        let len = || {
            std::str::from_utf8(&reply[1..])
                .ok()?
                .trim()
                .parse::<i64>()
                .ok()
        };
        match (kind, len()) {
            (b'$', Some(len @ 0..)) => {
                let len = usize::try_from(len).expect("it fits");
                reply.extend(self.read_exactly(len + 2));
            }
            (b'*', Some(len)) => {
                for _ in 0..len {
                    reply.extend(self.next());
                }
            }
            _ => {}
        }
        reply
    }
}

/// Encodes a request of these words.
pub(super) fn request(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len());
    for word in words {
        bytes += &format!("${}\r\n{word}\r\n", word.len());
    }
    bytes.into_bytes()
}

/// Returns the length of the request at the beginning of these bytes, or `None` if it is incomplete.
pub(super) fn request_len(bytes: &[u8]) -> Option<usize> {
    let (count, mut at) = number_at(bytes, 0)?;
    for _ in 0..count {
        let (len, begin) = number_at(bytes, at)?;
        at = begin + len + 2;
    }
    (at <= bytes.len()).then_some(at)
}

/// Returns the number in the line that begins here, without its first byte, and where the next line begins.
fn number_at(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let line = bytes.get(at..)?;
    let end = line.windows(2).position(|pair| pair == b"\r\n")?;
    let number = std::str::from_utf8(&line[1..end]).ok()?.parse();
    Some((
        number.expect("clients send arrays of strings"),
        at + end + 2,
    ))
}
