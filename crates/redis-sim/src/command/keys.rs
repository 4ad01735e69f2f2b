//! Commands for keys of any type, and their expiry.

pub(super) mod expiry;
mod restore;

use crate::call::{Answer, Call, Flag};
use crate::data::DATABASES;
use crate::definition::{Command, grow, on_data, read, write};
use crate::glob;
use crate::number;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::value::Hash;

pub(crate) const COMMANDS: &[Command] = &[
    read("dbsize", 1, |call| {
        Ok(Reply::count(call.data.entries(*call.db).count()))
    }),
    write("del", -2, delete),
    read("exists", -2, exist),
    write("expire", -3, |call| {
        expiry::set(call, expiry::RELATIVE_SECONDS)
    }),
    write("expireat", -3, |call| expiry::set(call, expiry::SECONDS)),
    read("expiretime", 2, |call| Ok(expiry::at(call, 1_000))),
    write("flushall", -1, flush_all),
    write("flushdb", -1, flush),
    read("keys", 2, keys),
    write("persist", 2, expiry::drop),
    write("pexpire", -3, |call| {
        expiry::set(call, expiry::RELATIVE_MILLIS)
    }),
    write("pexpireat", -3, |call| expiry::set(call, expiry::MILLIS)),
    read("pexpiretime", 2, |call| Ok(expiry::at(call, 1))),
    read("pttl", 2, |call| Ok(expiry::left(call, 1))),
    write("rename", 3, rename),
    grow("restore", -4, restore::restore),
    read("scan", -2, scan),
    on_data("select", 2, &[Flag::WhileLoading], select),
    read("touch", -2, exist),
    read("ttl", 2, |call| Ok(expiry::left(call, 1_000))),
    read("type", 2, kind),
    write("unlink", -2, delete),
];

fn delete(call: &mut Call<'_>) -> Answer {
    let keys = call.words_from(1).iter();
    let gone = keys.filter(|key| call.data.remove(*call.db, key));
    Ok(Reply::count(gone.count()))
}

fn exist(call: &mut Call<'_>) -> Answer {
    let keys = call.words_from(1).iter();
    Ok(Reply::count(
        keys.filter(|key| call.value(key).is_some()).count(),
    ))
}

fn kind(call: &mut Call<'_>) -> Answer {
    let name = call
        .value(call.word(1))
        .map_or("none", |value| value.type_name());
    Ok(Reply::Status(name.as_bytes().into()))
}

fn rename(call: &mut Call<'_>) -> Answer {
    let (from, to) = (call.word(1), call.word(2));
    let entry = call.data.entry(*call.db, from).cloned();
    let entry = entry.ok_or(Refusal::of("ERR no such key"))?;
    call.data.remove(*call.db, from);
    call.data.put(*call.db, to, entry.value, entry.expires);
    Ok(Reply::OK)
}

fn keys(call: &mut Call<'_>) -> Answer {
    let pattern = call.word(1);
    let keys = call.data.entries(*call.db).map(|(key, _)| key);
    let keys = keys
        .filter(|key| glob::matches(pattern, key))
        .map(Reply::bulk);
    Ok(Reply::Array(keys.collect()))
}

/// The filter of a scan.
struct Filter<'a> {
    pattern: &'a [u8],
    kind: Option<Vec<u8>>,
}

impl<'a> Filter<'a> {
    /// Parses the options, which begin after the cursor.
    fn of(call: &Call<'a>, cursor: usize) -> Result<Self, Refusal> {
        if call.int(cursor).is_err() {
            return Err(Refusal::of("ERR invalid cursor"));
        }
        let mut filter = Filter {
            pattern: b"*",
            kind: None,
        };
        let mut at = cursor + 1;
        while at < call.words.len() {
            let is_whole = at + 1 < call.words.len();
            if is_whole && call.word_is(at, "match") {
                filter.pattern = call.word(at + 1);
            } else if is_whole && call.word_is(at, "type") && cursor == 1 {
                filter.kind = Some(call.word(at + 1).to_ascii_lowercase());
            } else if !is_whole || !call.word_is(at, "count") || call.int(at + 1)? < 1 {
                return Err(Refusal::SYNTAX);
            }
            at += 2;
        }
        Ok(filter)
    }
}

/// Returns the result of a scan: all elements at once, with the cursor 0.
fn found(replies: impl Iterator<Item = Reply>) -> Answer {
    let replies = Reply::Array(replies.collect());
    Ok(Reply::Array(vec![Reply::bulk("0"), replies]))
}

fn scan(call: &mut Call<'_>) -> Answer {
    let filter = Filter::of(call, 1)?;
    let entries = call.data.entries(*call.db).filter(|(key, entry)| {
        let name = entry.value.type_name().as_bytes();
        glob::matches(filter.pattern, key) && filter.kind.as_ref().is_none_or(|kind| kind == name)
    });
    found(entries.map(|(key, _)| Reply::bulk(key)))
}

/// `HSCAN`.
pub(super) fn scan_fields(call: &mut Call<'_>) -> Answer {
    let filter = Filter::of(call, 2)?;
    let hash = call.collection::<Hash>(call.word(1))?;
    let pairs = hash.into_iter().flat_map(Hash::iter);
    let pairs = pairs.filter(|(field, _)| glob::matches(filter.pattern, field));
    found(pairs.flat_map(|(field, value)| [Reply::bulk(field), Reply::bulk(value)]))
}

fn select(call: &mut Call<'_>) -> Answer {
    let db = number::parse_int(call.word(1))
        .ok_or(Refusal::of("ERR value is not an integer or out of range"))?;
    let db = usize::try_from(db).ok().filter(|db| *db < DATABASES);
    *call.db = db.ok_or(Refusal::of("ERR DB index is out of range"))?;
    Ok(Reply::OK)
}

fn check_flush(call: &Call<'_>) -> Result<(), Refusal> {
    match call.words.len() {
        1 => Ok(()),
        2 if call.word_is(1, "sync") || call.word_is(1, "async") => Ok(()),
        _ => Err(Refusal::SYNTAX),
    }
}

fn flush(call: &mut Call<'_>) -> Answer {
    check_flush(call)?;
    call.data.empty(*call.db);
    Ok(Reply::OK)
}

fn flush_all(call: &mut Call<'_>) -> Answer {
    check_flush(call)?;
    call.data.empty_all();
    Ok(Reply::OK)
}
