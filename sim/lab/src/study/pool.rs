//! Distributes tasks over several threads.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Executes each piece of work once, on this number of threads. A thread that is free takes the next piece.
///
/// `take` receives the result of each piece, one at a time, in the order in which the pieces end. When it returns
/// `Break`, no further piece begins. It still receives the results of pieces that have already begun.
pub(crate) fn share_out<P, T>(
    threads: usize,
    pieces: impl Iterator<Item = P> + Send,
    work: impl Fn(P) -> T + Sync,
    take: impl FnMut(T) -> ControlFlow<()> + Send,
) {
    let pieces = Mutex::new(pieces);
    let take = Mutex::new(take);
    let is_over = AtomicBool::new(false);
    // The mutex is poisoned if a thread has panicked. In that case, the scope panics as well after all threads have
    // ended.
    let next = || pieces.lock().ok()?.next();
    let worker = || {
        while !is_over.load(Ordering::Relaxed)
            && let Some(piece) = next()
        {
            let done = work(piece);
            let flow = take.lock().map(|mut take| take(done));
            if !matches!(flow, Ok(ControlFlow::Continue(()))) {
                is_over.store(true, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(worker);
        }
    });
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    #[test]
    fn every_piece_is_done_once_on_any_number_of_threads() {
        for threads in 0..5 {
            let mut taken = Vec::new();
            let take = |done| {
                taken.push(done);
                ControlFlow::Continue(())
            };
            share_out(threads, 0..37, |piece| (piece, piece * 2), take);
            taken.sort_unstable();
            let all: Vec<(u64, u64)> = (0..37).map(|piece| (piece, piece * 2)).collect();
            assert_eq!(taken, all, "{threads} threads");
        }
    }

    #[test]
    fn nothing_begins_after_a_break_and_what_was_begun_is_taken() {
        for threads in 1..5 {
            let begun = AtomicU64::new(0);
            let mut taken = 0;
            let work = |_| begun.fetch_add(1, Ordering::Relaxed);
            let take = |_| {
                taken += 1;
                ControlFlow::Break(())
            };
            share_out(threads, 0.., work, take);
            assert_eq!(taken, begun.load(Ordering::Relaxed));
            assert!((1..=threads as u64).contains(&taken), "{threads}: {taken}");
        }
    }
}
