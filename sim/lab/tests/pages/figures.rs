//! Checks that every figure on the pages is the output of its command. `docs/results` has the output of the commands,
//! with the command line, the version and the commit. The figures on the pages come from there.
//!
//! `cargo test -p quorlock-sim-lab --test pages` runs the quick commands again and compares every digit.
//! `docs/regenerate.sh` runs all commands again (`QUORLOCK_FIGURES=all`) and writes results and pages.
//! `QUORLOCK_FIGURES=quick` writes only the results of the quick commands.

#![expect(
    clippy::indexing_slicing,
    reason = "of JSON: what is not there is null"
)]

mod locks;
mod long;
mod pages;
mod peers;
mod picture;
mod quick;
mod rates;
mod results;
mod studies;

use results::Results;

/// Returns which figures to write, if any.
fn asked() -> Option<String> {
    std::env::var("QUORLOCK_FIGURES").ok()
}

#[test]
fn pages_say_what_commands_print() {
    let asked = asked();
    let commit = match &asked {
        Some(_) => results::commit(),
        None => String::new(),
    };
    let mut stale = Vec::new();
    for quick in quick::all() {
        let kept = Results::read(quick.name);
        let is_same = kept
            .as_ref()
            .is_some_and(|kept| kept.figures == quick.figures);
        if asked.is_some() {
            quick.write(&commit);
        } else if !is_same {
            stale.push(format!("{}: now {:#?}", quick.name, quick.figures));
        }
    }
    if let Some(asked) = asked.as_deref().filter(|asked| *asked != "quick") {
        stale.extend(long::write(asked, &commit));
    }
    let figures = results::all();
    for (path, page) in pages::all() {
        let (filled, wrong) = pages::filled(&page, &figures);
        let place = |why: String| format!("{}: {why}", path.display());
        stale.extend(wrong.into_iter().map(place));
        if asked.is_some() {
            std::fs::write(&path, filled).unwrap();
        } else if filled != page {
            stale.push(place("not what docs/results says".to_owned()));
        }
    }
    let rows = std::fs::read_to_string(results::root().join("docs/results/peers.jsonl"));
    let drawn = picture::draw(&peers::rows(&rows.expect("rows")));
    if asked.is_some() {
        std::fs::write(picture::path(), drawn).unwrap();
    } else if std::fs::read_to_string(picture::path()).ok() != Some(drawn) {
        stale.push("docs/src/pairs.svg is not what docs/results/peers.jsonl says".to_owned());
    }
    let help = "docs/regenerate.sh updates what is out of date";
    assert!(stale.is_empty(), "{}\n{help}", stale.join("\n"));
}
