//! Tests of the sum of parts.

use super::*;
use quorlock_sim_plan::LockKind;

fn campaign(index: u64, of: u64) -> Campaign {
    Campaign {
        generator: PlanGenerator::default(),
        seeds: 10..21,
        shard: Shard { index, of },
        jobs: 1,
        after_failure: AfterFailure::GoOn,
        out: None,
        histories: None,
    }
}

fn part(campaign: &Campaign) -> Part {
    Part::run(campaign).unwrap()
}

fn parts() -> Vec<Part> {
    (0..3).map(|index| part(&campaign(index, 3))).collect()
}

#[test]
fn parts_merge_to_the_whole_and_are_read_as_they_were_written() {
    let whole = part(&campaign(0, 1));
    let mut shuffled = parts();
    shuffled.rotate_left(1);
    let merged = Part::merge(shuffled).unwrap();
    assert_eq!(merged, whole);
    assert_eq!(merged.summary.runs, 11);
    assert_eq!(Part::read(&merged.text()), Ok(merged));
}

#[test]
fn a_shard_counts_once_and_none_may_be_missing() {
    assert_eq!(Part::merge(Vec::new()), Err(MergeError::Nothing));
    let mut twice = parts();
    twice.push(twice[1].clone());
    let shard = "1/3".to_owned();
    assert_eq!(Part::merge(twice), Err(MergeError::Twice { shard }));
    let mut some = parts();
    some.remove(1);
    some.remove(1);
    let shards = vec!["1/3".to_owned(), "2/3".to_owned()];
    let missing = Part::merge(some).unwrap_err();
    assert_eq!(missing, MergeError::Missing { shards });
    assert!(
        missing.to_string().ends_with("no shard 1/3, 2/3"),
        "{missing}"
    );
}

#[test]
fn parts_of_different_campaigns_are_refused_by_what_differs() {
    let right = parts();
    let other = |change: fn(&mut Campaign)| {
        let mut campaign = campaign(1, 3);
        change(&mut campaign);
        Part {
            origin: Origin::of(&campaign),
            ..right[1].clone()
        }
    };
    let cases: [(Part, &str); 5] = [
        (other(|c| c.seeds = 10..22), "range"),
        (other(|c| c.shard.of = 4), "number of shards"),
        (other(|c| c.generator.lock = LockKind::Single), "flags"),
        (other(|c| c.generator.clients = Some(3)), "flags"),
        (other(|c| c.after_failure = AfterFailure::Stop), "flags"),
    ];
    for (part, what) in cases {
        let mut parts = right.clone();
        parts[1] = part;
        let error = Part::merge(parts).unwrap_err();
        assert!(
            matches!(error, MergeError::Differs { what: w, .. } if w == what),
            "{error}"
        );
    }
    type Change = fn(&mut Origin);
    let changes: [(Change, &str); 4] = [
        (|origin| origin.version = "0.0.9".to_owned(), "version"),
        (|origin| origin.commit = Some("abc".to_owned()), "commit"),
        (|origin| origin.generator = "0".to_owned(), "generator"),
        (|origin| origin.behaviour = "0".to_owned(), "behaviour"),
    ];
    for (change, what) in changes {
        let mut parts = right.clone();
        change(&mut parts[2].origin);
        let error = Part::merge(parts).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains(&format!("shard 2/3 is of another campaign: its {what} is")),
            "{text}"
        );
    }
}

#[test]
fn a_part_that_was_cut_short_is_refused_unless_a_failure_ended_it() {
    let mut parts = parts();
    parts[0].summary.runs -= 1;
    let error = Part::merge(parts.clone()).unwrap_err();
    let shard = "0/3".to_owned();
    assert_eq!(
        error,
        MergeError::Incomplete {
            shard,
            runs: 3,
            of: 4
        }
    );
    parts[0].summary.violated.insert("exclusion".to_owned(), 1);
    assert_eq!(Part::merge(parts).unwrap().summary.runs, 10);
}

#[test]
fn what_is_not_a_part_is_refused() {
    let part = part(&campaign(0, 3));
    let old = serde_json::to_string(&part.summary).unwrap();
    let no_shard = part.text().replacen("[0,3]", "[3,3]", 1);
    let strange = part.text().replacen('{', "{\"else\":1,", 1);
    for text in ["", "{}", "[]", &old, &no_shard, &strange] {
        let error = Part::read(text).unwrap_err();
        assert!(
            matches!(error, MergeError::NoPart { .. }),
            "{text}: {error}"
        );
    }
}
