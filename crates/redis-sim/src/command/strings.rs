//! Commands for strings and counters.

use crate::call::{Answer, Call};
use crate::command::keys::expiry;
use crate::definition::{Command, grow, read};
use crate::number;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::value::Value;

pub(crate) const COMMANDS: &[Command] = &[
    grow("append", 3, append),
    grow("decr", 2, |call| add(call, -1)),
    grow("decrby", 3, |call| {
        let by = call.int(2)?.checked_neg();
        add(call, by.ok_or(Refusal::of("ERR decrement would overflow"))?)
    }),
    read("get", 2, get),
    grow("getdel", 2, get_and_delete),
    grow("getset", 3, get_and_set),
    grow("incr", 2, |call| add(call, 1)),
    grow("incrby", 3, |call| add(call, call.int(2)?)),
    read("mget", -2, get_many),
    grow("mset", -3, set_many),
    grow("psetex", 4, |call| set_for(call, 1)),
    grow("set", -3, set),
    grow("setex", 4, |call| set_for(call, 1_000)),
    grow("setnx", 3, set_new),
    read("strlen", 2, length),
];

fn get(call: &mut Call<'_>) -> Answer {
    Ok(call.text(call.word(1))?.map_or(Reply::Nil, Reply::bulk))
}

fn get_many(call: &mut Call<'_>) -> Answer {
    let text = |key: &Vec<u8>| match call.value(key) {
        Some(Value::Text(text)) => Reply::bulk(text),
        _ => Reply::Nil,
    };
    Ok(Reply::Array(call.words_from(1).iter().map(text).collect()))
}

fn get_and_delete(call: &mut Call<'_>) -> Answer {
    let old = get(call)?;
    call.data.remove(*call.db, call.word(1));
    Ok(old)
}

fn get_and_set(call: &mut Call<'_>) -> Answer {
    let old = get(call)?;
    put(call, call.word(1), call.word(2).to_vec(), None);
    Ok(old)
}

fn length(call: &mut Call<'_>) -> Answer {
    Ok(Reply::count(call.text(call.word(1))?.map_or(0, Vec::len)))
}

fn put(call: &mut Call<'_>, key: &[u8], text: Vec<u8>, expires: Option<i64>) {
    call.data.put(*call.db, key, Value::Text(text), expires);
}

fn set_many(call: &mut Call<'_>) -> Answer {
    let pairs = call.words_from(1).chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return Err(Refusal::arity("mset"));
    }
    for pair in pairs {
        if let [key, text] = pair {
            put(call, key, text.clone(), None);
        }
    }
    Ok(Reply::OK)
}

fn set_new(call: &mut Call<'_>) -> Answer {
    let key = call.word(1);
    if call.value(key).is_some() {
        return Ok(Reply::Int(0));
    }
    put(call, key, call.word(2).to_vec(), None);
    Ok(Reply::Int(1))
}

/// Executes `SETEX` and `PSETEX`.
fn set_for(call: &mut Call<'_>, unit: i64) -> Answer {
    let name = if unit == 1 { "psetex" } else { "setex" };
    let expires = lifetime(call.int(2)?, unit, call.now_millis(), name)?;
    put(call, call.word(1), call.word(3).to_vec(), Some(expires));
    Ok(Reply::OK)
}

/// Returns the expiry of a key with this lifetime, which must be positive.
fn lifetime(lasts: i64, unit: i64, since: i64, name: &str) -> Result<i64, Refusal> {
    let lasts = if lasts <= 0 { None } else { Some(lasts) };
    let ends = lasts.and_then(|lasts| lasts.checked_mul(unit)?.checked_add(since));
    ends.ok_or_else(|| expiry::invalid(name))
}

/// A condition on the existence of the key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Only {
    IfNew,
    IfThere,
}

/// The options of `SET`, which follow the value.
#[derive(Default)]
struct Options {
    only: Option<Only>,
    returns_old: bool,
    expires: Option<i64>,
    keeps_expiry: bool,
}

fn set(call: &mut Call<'_>) -> Answer {
    let options = options(call)?;
    let (key, text) = (call.word(1), call.word(2).to_vec());
    let old = if options.returns_old {
        Some(get(call)?)
    } else {
        None
    };
    let stands = call.data.entry(*call.db, key);
    let is_wanted = match options.only {
        None => true,
        Some(Only::IfNew) => stands.is_none(),
        Some(Only::IfThere) => stands.is_some(),
    };
    let kept = stands
        .and_then(|entry| entry.expires)
        .filter(|_| options.keeps_expiry);
    if !is_wanted {
        return Ok(old.unwrap_or(Reply::Nil));
    }
    put(call, key, text, options.expires.or(kept));
    Ok(old.unwrap_or(Reply::OK))
}

fn options(call: &Call<'_>) -> Result<Options, Refusal> {
    let mut options = Options::default();
    let mut at = 3;
    while at < call.words.len() {
        let word = call.word(at).to_ascii_lowercase();
        let has_expiry = options.expires.is_some() || options.keeps_expiry;
        match word.as_slice() {
            b"nx" if options.only != Some(Only::IfThere) => options.only = Some(Only::IfNew),
            b"xx" if options.only != Some(Only::IfNew) => options.only = Some(Only::IfThere),
            b"get" => options.returns_old = true,
            b"keepttl" if !has_expiry => options.keeps_expiry = true,
            b"ex" | b"px" | b"exat" | b"pxat" if !has_expiry && at + 1 < call.words.len() => {
                at += 1;
                let unit = if word.starts_with(b"e") { 1_000 } else { 1 };
                let since = if word.len() == 2 {
                    call.now_millis()
                } else {
                    0
                };
                options.expires = Some(lifetime(call.int(at)?, unit, since, "set")?);
            }
            _ => return Err(Refusal::SYNTAX),
        }
        at += 1;
    }
    Ok(options)
}

fn append(call: &mut Call<'_>) -> Answer {
    let key = call.word(1);
    let mut text = call.text(key)?.cloned().unwrap_or_default();
    text.extend_from_slice(call.word(2));
    let len = text.len();
    replace(call, key, text);
    Ok(Reply::count(len))
}

/// Replaces the text of a key and keeps its expiry.
fn replace(call: &mut Call<'_>, key: &[u8], text: Vec<u8>) {
    let expires = call
        .data
        .entry(*call.db, key)
        .and_then(|entry| entry.expires);
    put(call, key, text, expires);
}

fn add(call: &mut Call<'_>, by: i64) -> Answer {
    let key = call.word(1);
    let old = match call.text(key)? {
        Some(text) => number::parse_int(text).ok_or(Refusal::NOT_AN_INTEGER)?,
        None => 0,
    };
    let overflow = Refusal::of("ERR increment or decrement would overflow");
    let new = old.checked_add(by).ok_or(overflow)?;
    replace(call, key, new.to_string().into_bytes());
    Ok(Reply::Int(new))
}
