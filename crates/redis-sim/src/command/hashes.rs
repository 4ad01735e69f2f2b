//! Commands for hashes.

use crate::call::{Answer, Call};
use crate::command::keys;
use crate::definition::{Command, grow, read, write};
use crate::number;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::value::Hash;

pub(crate) const COMMANDS: &[Command] = &[
    write("hdel", -3, delete),
    read("hexists", 3, |call| {
        let hash = call.collection::<Hash>(call.word(1))?;
        let field = hash.and_then(|hash| hash.get(call.word(2)));
        Ok(Reply::Int(i64::from(field.is_some())))
    }),
    read("hget", 3, get),
    read("hgetall", 2, get_all),
    grow("hincrby", 4, add),
    read("hkeys", 2, |call| list(call, |(field, _)| field)),
    read("hlen", 2, |call| {
        let hash = call.collection::<Hash>(call.word(1))?;
        Ok(Reply::count(hash.map_or(0, Hash::len)))
    }),
    read("hmget", -3, get_many),
    grow("hmset", -4, |call| set(call, "hmset").map(|_| Reply::OK)),
    read("hscan", -3, keys::scan_fields),
    grow("hset", -4, |call| set(call, "hset").map(Reply::count)),
    grow("hsetnx", 4, set_new),
    read("hvals", 2, |call| list(call, |(_, value)| value)),
];

fn get(call: &mut Call<'_>) -> Answer {
    let hash = call.collection::<Hash>(call.word(1))?;
    let value = hash.and_then(|hash| hash.get(call.word(2)));
    Ok(value.map_or(Reply::Nil, Reply::bulk))
}

fn get_many(call: &mut Call<'_>) -> Answer {
    let hash = call.collection::<Hash>(call.word(1))?;
    let value = |field: &Vec<u8>| {
        let value = hash.and_then(|hash| hash.get(field));
        value.map_or(Reply::Nil, Reply::bulk)
    };
    Ok(Reply::Array(call.words_from(2).iter().map(value).collect()))
}

fn get_all(call: &mut Call<'_>) -> Answer {
    let hash = call.collection::<Hash>(call.word(1))?;
    let pairs = hash.into_iter().flat_map(Hash::iter);
    let pairs = pairs.map(|(field, value)| (Reply::bulk(field), Reply::bulk(value)));
    Ok(Reply::Map(pairs.collect()))
}

/// A field and its value.
type Pair = (Vec<u8>, Vec<u8>);

fn list(call: &mut Call<'_>, part: fn(&Pair) -> &Vec<u8>) -> Answer {
    let hash = call.collection::<Hash>(call.word(1))?;
    let pairs = hash.into_iter().flat_map(Hash::iter);
    Ok(Reply::Array(
        pairs.map(|pair| Reply::bulk(part(pair))).collect(),
    ))
}

/// Sets fields. Returns how many of them are new.
fn set(call: &mut Call<'_>, name: &str) -> Result<usize, Refusal> {
    let pairs = call.words_from(2).chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return Err(Refusal::arity(name));
    }
    call.edit(call.word(1), |hash: &mut Hash| {
        let is_new = |pair: &&[Vec<u8>]| match pair {
            [field, value] => hash.set(field, value.clone()),
            _ => false,
        };
        pairs.filter(is_new).count()
    })
}

fn set_new(call: &mut Call<'_>) -> Answer {
    let (key, field, value) = (call.word(1), call.word(2), call.word(3));
    let hash = call.collection::<Hash>(key)?;
    if hash.is_some_and(|hash| hash.get(field).is_some()) {
        return Ok(Reply::Int(0));
    }
    call.edit(key, |hash: &mut Hash| hash.set(field, value.to_vec()))?;
    Ok(Reply::Int(1))
}

fn delete(call: &mut Call<'_>) -> Answer {
    let (key, fields) = (call.word(1), call.words_from(2));
    if call.collection::<Hash>(key)?.is_none() {
        return Ok(Reply::Int(0));
    }
    let gone = call.edit(key, |hash: &mut Hash| {
        fields.iter().filter(|field| hash.remove(field)).count()
    })?;
    Ok(Reply::count(gone))
}

fn add(call: &mut Call<'_>) -> Answer {
    let (key, field, by) = (call.word(1), call.word(2), call.int(3)?);
    let old = call
        .collection::<Hash>(key)?
        .and_then(|hash| hash.get(field));
    let old = match old {
        Some(text) => {
            let none = Refusal::of("ERR hash value is not an integer");
            number::parse_int(text).ok_or(none)?
        }
        None => 0,
    };
    let overflow = Refusal::of("ERR increment or decrement would overflow");
    let new = old.checked_add(by).ok_or(overflow)?;
    call.edit(key, |hash: &mut Hash| {
        hash.set(field, new.to_string().into_bytes())
    })?;
    Ok(Reply::Int(new))
}
