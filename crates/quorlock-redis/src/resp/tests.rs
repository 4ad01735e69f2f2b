//! Tests complete replies, replies in packets, and bytes that are no reply.

use super::*;

/// Replies that a server may send to our commands.
const REPLIES: [&str; 16] = [
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
    "*2\r\n*0\r\n*1\r\n*1\r\n$2\r\n\r\n\r\n",
    "-NOSCRIPT No matching script. Please use EVAL.\r\n",
    "-ERR wrong\r\n",
    "*2\r\n:1\r\n-WRONGTYPE it is a list\r\n",
];

/// Decodes all replies in these packets.
fn decode<'a>(packets: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<Value>, NoReply> {
    let mut decoder = Decoder::default();
    let mut replies = Vec::new();
    for packet in packets {
        let mut rest = packet;
        while !rest.is_empty() {
            let Decoded { reply, used } = decoder.decode(rest)?;
            rest = &rest[used..];
            assert!(reply.is_some() || rest.is_empty(), "it stopped in between");
            replies.extend(reply);
        }
    }
    Ok(replies)
}

fn as_the_redis_crate_reads_them() -> Vec<Value> {
    let read = |reply: &str| redis::parse_redis_value(reply.as_bytes()).unwrap();
    REPLIES.map(read).to_vec()
}

#[test]
fn replies_read_as_the_redis_crate_reads_them_wherever_the_stream_is_cut() {
    let stream = REPLIES.concat();
    let stream = stream.as_bytes();
    let whole = as_the_redis_crate_reads_them();
    assert_eq!(decode([stream]), Ok(whole.clone()));
    for first in 0..=stream.len() {
        let (one, rest) = stream.split_at(first);
        assert_eq!(decode([one, rest]), Ok(whole.clone()), "cut at {first}");
        for second in (0..=rest.len()).step_by(3) {
            let (two, three) = rest.split_at(second);
            let split = decode([one, two, three]);
            assert_eq!(split, Ok(whole.clone()), "cut at {first}, {second} more");
        }
    }
    for size in 1..=stream.len() {
        assert_eq!(decode(stream.chunks(size)), Ok(whole.clone()), "by {size}");
    }
}

#[test]
fn a_reply_that_is_cut_anywhere_is_waited_for_and_what_follows_it_is_left() {
    for reply in REPLIES {
        for cut in 0..reply.len() {
            let beginning = &reply.as_bytes()[..cut];
            assert_eq!(decode([beginning]), Ok(vec![]), "{reply:?} up to {cut}");
        }
        let both = format!("{reply}:7\r\n");
        let decoded = Decoder::default().decode(both.as_bytes()).unwrap();
        assert_eq!(decoded.used, reply.len());
    }
}

#[test]
fn no_byte_is_looked_at_twice_however_many_packets_a_reply_comes_in() {
    let many = format!("*100000\r\n{}", ":1\r\n".repeat(100_000));
    let long = format!("$1000000\r\n{}\r\n", "x".repeat(1_000_000));
    let words = format!("-ERR {}\r\n", "x".repeat(50_000));
    for stream in [many, long, words] {
        for size in [1, 7, 1_400, 16 * 1_024, stream.len()] {
            let mut decoder = Decoder::default();
            let mut replies = 0;
            for packet in stream.as_bytes().chunks(size) {
                let decoded = decoder.decode(packet).unwrap();
                assert_eq!(decoded.used, packet.len());
                replies += usize::from(decoded.reply.is_some());
            }
            assert_eq!((replies, decoder.scanned), (1, stream.len()), "by {size}");
        }
    }
}

#[test]
fn a_pushed_message_and_a_map_are_arrays_and_null_is_nil() {
    let text = |text: &str| Value::BulkString(text.into());
    for (stream, reply) in [
        (
            ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n",
            Value::Array(vec![text("invalidate"), Value::Array(vec![text("a")])]),
        ),
        (
            ">2\r\n$10\r\ninvalidate\r\n_\r\n",
            Value::Array(vec![text("invalidate"), Value::Nil]),
        ),
        (
            "%2\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n*0\r\n",
            Value::Array(vec![
                text("a"),
                Value::Int(1),
                text("b"),
                Value::Array(Vec::new()),
            ]),
        ),
    ] {
        let stream = stream.as_bytes();
        assert_eq!(decode([stream]), Ok(vec![reply.clone()]), "{stream:?}");
        assert_eq!(decode(stream.chunks(1)), Ok(vec![reply]), "{stream:?}");
    }
}

#[test]
fn what_is_no_reply_is_refused_wherever_it_is_cut() {
    use NoReply::{Malformed, TooDeep, TooLong};
    let deep = "*1\r\n".repeat(100) + ":1\r\n";
    let endless = format!("+{}", "x".repeat(MOST_LINE));
    let most = MOST / size_of::<Value>();
    // Each text is within the bound, and so is the array; together they are not.
    let together = format!("*{}\r\n${MOST}\r\n", most / 2);
    let elements = format!("*{}\r\n", most + 1);
    let text = format!("${}\r\n", MOST + 1);
    for (stream, refusal) in [
        ("HTTP/1.1 400 Bad Request\r\n", Malformed),
        ("\r\n", Malformed),
        (":\r\n", Malformed),
        (":1x\r\n", Malformed),
        ("$-2\r\n", Malformed),
        ("$99999999999999999999\r\n", Malformed),
        ("$1\r\nabc", Malformed),
        ("*-2\r\n", Malformed),
        ("*1\r\n!\r\n", Malformed),
        ("_1\r\n", Malformed),
        ("~1\r\n+a\r\n", Malformed),
        ("$9223372036854775807\r\n", TooLong),
        ("*9223372036854775807\r\n", TooLong),
        (&text, TooLong),
        (&elements, TooLong),
        (&together, TooLong),
        (&endless, TooLong),
        (&deep, TooDeep),
    ] {
        let stream = stream.as_bytes();
        assert_eq!(decode([stream]), Err(refusal), "{stream:?}");
        assert_eq!(decode(stream.chunks(1)), Err(refusal), "{stream:?}");
    }
}

#[test]
fn what_a_server_only_announces_takes_no_memory() {
    let mut decoder = Decoder::default();
    let most = MOST / 2 / size_of::<Value>();
    let announced = format!("*{most}\r\n${}\r\nx", MOST / 2);
    assert_eq!(decoder.decode(announced.as_bytes()).unwrap().reply, None);
    let kept = decoder.open.iter().map(|array| array.values.capacity());
    assert!(kept.sum::<usize>() <= 16);
    let PartialElement::Text(text, _) = &decoder.part else {
        panic!("{decoder:?}");
    };
    assert!(text.capacity() <= 64);
}

#[test]
fn the_bound_is_that_of_one_reply_and_not_of_a_connection() {
    let reply = format!("${}\r\n{}\r\n", MOST, "x".repeat(MOST));
    let decoded = decode([reply.as_bytes(), reply.as_bytes()]).unwrap();
    assert_eq!(decoded.len(), 2);
}
