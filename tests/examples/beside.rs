//! Adds to a counter that only a lock protects, while a client in Python does the same: see `tests/protocol/run.sh`.

use std::error::Error;
use std::time::Duration;

use quorlock::{Guard, Locks};
use redis::{Commands, Connection};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut numbers = std::env::args().skip(1).map(|number| number.parse::<u32>());
    let usage = "beside STORE ROUNDS PORT...";
    let store = numbers.next().ok_or(usage)??;
    let rounds = numbers.next().ok_or(usage)??;
    let ports = numbers.collect::<Result<Vec<_>, _>>()?;
    let address = |port: u32| format!("redis://127.0.0.1:{port}/");
    let mut store = redis::Client::open(address(store))?.get_connection()?;
    let builder = Locks::builder().trust_fresh_nodes();
    let locks = match ports.as_slice() {
        [port] => builder.connect(&address(*port)).await?,
        ports => builder.quorum(ports.iter().copied().map(address)).await?,
    };
    let () = store.incr("here", 1)?;
    while store.get::<_, u32>("here")? < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for _ in 0..rounds {
        let lock = locks.lock("shared").wait(Duration::from_secs(60));
        let guard = lock.acquire().await?;
        take_a_turn(&mut store, &guard)?;
        guard.release().await?;
    }
    locks.close().await;
    Ok(())
}

fn take_a_turn(store: &mut Connection, guard: &Guard) -> Result<(), Box<dyn Error>> {
    if !store.set_nx::<_, _, bool>("inside", "quorlock")? {
        let other: String = store.get("inside")?;
        return Err(format!("{other} is inside, too").into());
    }
    let token = guard.fencing_token().0;
    let last: Option<u64> = store.get("token")?;
    if last.is_some_and(|last| token <= last) {
        return Err(format!("the token {token} comes after {last:?}").into());
    }
    let value: Option<u64> = store.get("counter")?;
    let () = store.set("token", token)?;
    let () = store.set("counter", value.unwrap_or(0) + 1)?;
    let () = store.rpush("turns", "quorlock")?;
    let () = store.del("inside")?;
    Ok(())
}
