//! Commands for lists.

use crate::call::{Answer, Call, place, range};
use crate::definition::{Command, grow, read, write};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::value::List;

pub(crate) const COMMANDS: &[Command] = &[
    read("lindex", 3, index),
    read("llen", 2, |call| {
        let list = call.collection::<List>(call.word(1))?;
        Ok(Reply::count(list.map_or(0, |list| list.0.len())))
    }),
    write("lpop", -2, |call| pop(call, End::Front)),
    grow("lpush", -3, |call| push(call, End::Front)),
    grow("lpushx", -3, |call| push_if_there(call, End::Front)),
    read("lrange", 4, slice),
    write("lrem", 4, remove),
    grow("lset", 4, set),
    write("ltrim", 4, trim),
    write("rpop", -2, |call| pop(call, End::Back)),
    grow("rpush", -3, |call| push(call, End::Back)),
    grow("rpushx", -3, |call| push_if_there(call, End::Back)),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Front,
    Back,
}

fn index(call: &mut Call<'_>) -> Answer {
    let at = call.int(2)?;
    let list = call.collection::<List>(call.word(1))?;
    let element = list.and_then(|list| list.0.get(usize::try_from(place(at, list.0.len())).ok()?));
    Ok(element.map_or(Reply::Nil, Reply::bulk))
}

fn slice(call: &mut Call<'_>) -> Answer {
    let (from, to) = (call.int(2)?, call.int(3)?);
    let list = call.collection::<List>(call.word(1))?;
    let elements = list
        .into_iter()
        .flat_map(|list| list.0.range(range(from, to, list.0.len())));
    Ok(Reply::Array(elements.map(Reply::bulk).collect()))
}

fn push(call: &mut Call<'_>, end: End) -> Answer {
    let elements = call.words_from(2);
    let len = call.edit(call.word(1), |list: &mut List| {
        for element in elements {
            match end {
                End::Front => list.0.push_front(element.clone()),
                End::Back => list.0.push_back(element.clone()),
            }
        }
        list.0.len()
    })?;
    Ok(Reply::count(len))
}

fn push_if_there(call: &mut Call<'_>, end: End) -> Answer {
    match call.collection::<List>(call.word(1))? {
        Some(_) => push(call, end),
        None => Ok(Reply::Int(0)),
    }
}

fn pop(call: &mut Call<'_>, end: End) -> Answer {
    let (key, has_count) = (call.word(1), 2 < call.words.len());
    if 3 < call.words.len() {
        return Err(Refusal::arity(if end == End::Front {
            "lpop"
        } else {
            "rpop"
        }));
    }
    let positive = Refusal::of("ERR value is out of range, must be positive");
    let count = if has_count {
        usize::try_from(call.int(2).map_err(|_| positive.clone())?).map_err(|_| positive)?
    } else {
        1
    };
    if call.collection::<List>(key)?.is_none() {
        return Ok(if has_count {
            Reply::NilArray
        } else {
            Reply::Nil
        });
    }
    let mut popped = call.edit(key, |list: &mut List| {
        let next = |_| match end {
            End::Front => list.0.pop_front(),
            End::Back => list.0.pop_back(),
        };
        (0..count)
            .map_while(next)
            .map(Reply::Bulk)
            .collect::<Vec<_>>()
    })?;
    Ok(if has_count {
        Reply::Array(popped)
    } else {
        popped.pop().unwrap_or(Reply::Nil)
    })
}

/// Executes `LREM`, which removes from the end if the count is negative, and all if it is zero.
fn remove(call: &mut Call<'_>) -> Answer {
    let (key, count, element) = (call.word(1), call.int(2)?, call.word(3));
    if call.collection::<List>(key)?.is_none() {
        return Ok(Reply::Int(0));
    }
    let most = match usize::try_from(count.unsigned_abs()) {
        Ok(0) | Err(_) => usize::MAX,
        Ok(count) => count,
    };
    let removed = call.edit(key, |list: &mut List| {
        let found = list
            .0
            .iter()
            .enumerate()
            .filter(|(_, other)| *other == element);
        let mut found: Vec<usize> = found.map(|(at, _)| at).collect();
        if count < 0 {
            found.reverse();
        }
        found.truncate(most);
        found.sort_unstable();
        for at in found.iter().rev() {
            list.0.remove(*at);
        }
        found.len()
    })?;
    Ok(Reply::count(removed))
}

fn set(call: &mut Call<'_>) -> Answer {
    let (key, at, element) = (call.word(1), call.int(2)?, call.word(3));
    let Some(list) = call.collection::<List>(key)? else {
        return Err(Refusal::of("ERR no such key"));
    };
    let at = usize::try_from(place(at, list.0.len())).ok();
    let at = at.filter(|at| *at < list.0.len());
    let at = at.ok_or(Refusal::of("ERR index out of range"))?;
    call.edit(key, |list: &mut List| {
        if let Some(old) = list.0.get_mut(at) {
            *old = element.to_vec();
        }
    })?;
    Ok(Reply::OK)
}

fn trim(call: &mut Call<'_>) -> Answer {
    let (key, from, to) = (call.word(1), call.int(2)?, call.int(3)?);
    if call.collection::<List>(key)?.is_some() {
        call.edit(key, |list: &mut List| {
            let kept = range(from, to, list.0.len());
            list.0.truncate(kept.end);
            list.0.drain(..kept.start.min(kept.end));
        })?;
    }
    Ok(Reply::OK)
}
