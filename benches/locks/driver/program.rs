//! The kinds of work.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures_util::future::{join_all, try_join_all};
use serde_json::{Value, json};

use crate::job::Job;
use crate::peer::Peer;
use crate::{Failure, hear};

/// Loads scripts, makes connections, and fills caches.
pub(crate) async fn warm_up(peer: &Peer) -> Result<(), Failure> {
    let name = format!("warm-up/{}", std::process::id());
    for _ in 0..200 {
        peer.acquire(&name).await?.release().await?;
    }
    Ok(())
}

pub(crate) async fn pairs(peer: &Peer, job: &Job) -> Result<Value, Failure> {
    let (began, length) = (Instant::now(), Duration::from_millis(job.millis));
    let callers = (0..job.callers).map(|caller| {
        let (peer, name) = (peer.clone(), format!("{}/{caller}", job.names));
        tokio::spawn(async move {
            let mut pairs = 0u64;
            while began.elapsed() < length {
                peer.acquire(&name).await?.release().await?;
                pairs += 1;
            }
            Ok::<_, Failure>(pairs)
        })
    });
    let mut sum = 0;
    for pairs in join_all(callers).await {
        sum += pairs??;
    }
    Ok(json!({ "pairs": sum, "micros": began.elapsed().as_micros() }))
}

pub(crate) async fn acquire(peer: &Peer, job: &Job) -> Result<Value, Failure> {
    let (began, length) = (Instant::now(), Duration::from_millis(job.millis));
    let pause = Duration::from_micros(job.pause_micros);
    let mut micros = Vec::new();
    while began.elapsed() < length {
        let asked = Instant::now();
        let held = peer.acquire(&job.names).await?;
        micros.push(asked.elapsed().as_secs_f64() * 1e6);
        held.release().await?;
        // The pause keeps requests in flight from slowing down the next caller.
        tokio::time::sleep(pause).await;
    }
    Ok(json!({ "acquires": micros }))
}

pub(crate) async fn holds(peer: &Peer, job: &Job) -> Result<Value, Failure> {
    let (began, length) = (Instant::now(), Duration::from_millis(job.millis));
    let (hold, pause) = (job.hold_micros, job.pause_micros);
    let callers = (0..job.callers).map(|_| {
        let (peer, name) = (peer.clone(), job.names.clone());
        tokio::spawn(async move {
            let mut holds = Vec::new();
            while began.elapsed() < length {
                let held = peer.acquire(&name).await?;
                let from = date()?;
                tokio::time::sleep(Duration::from_micros(hold)).await;
                holds.push((from, date()?));
                held.release().await?;
                if pause != 0 {
                    tokio::time::sleep(Duration::from_micros(pause)).await;
                }
            }
            Ok::<_, Failure>(holds)
        })
    });
    let mut all = Vec::new();
    for holds in join_all(callers).await {
        all.extend(holds??);
    }
    Ok(json!({ "holds": all }))
}

pub(crate) async fn keep(peer: &Peer, job: &Job) -> Result<Value, Failure> {
    let mut kept = Vec::with_capacity(job.locks);
    while kept.len() < job.locks {
        let many = kept.len()..job.locks.min(kept.len() + 100);
        let names = many.map(|number| format!("{}/{number:020}", job.names));
        kept.extend(
            try_join_all(names.map(|name| async move { peer.acquire(&name).await })).await?,
        );
    }
    let kept = kept.into_iter().map(|mut held| {
        let (stop, mut stopped) = tokio::sync::oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let is_kept = tokio::select! {
                biased;
                _ = &mut stopped => true,
                () = held.keep() => false,
            };
            is_kept && held.is_held()
        });
        (stop, task)
    });
    let kept: Vec<_> = kept.collect();
    println!("held");
    hear().await?;
    let (stops, tasks): (Vec<_>, Vec<_>) = kept.into_iter().unzip();
    for stop in stops {
        // A task whose lock was lost has stopped by itself.
        let _ = stop.send(());
    }
    let mut held = 0;
    for task in tasks {
        held += usize::from(task.await?);
    }
    Ok(json!({ "held": held }))
}

/// Returns microseconds since 1970, which all processes of this machine share.
fn date() -> Result<u64, Failure> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    Ok(u64::try_from(now.as_micros())?)
}
