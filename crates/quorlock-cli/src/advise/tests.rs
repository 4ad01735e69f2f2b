use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::table::{DEPLOYMENTS, Evidence};
use super::*;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page(name: &str) -> String {
    let path = repository().join("docs/src").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The verdicts of each scenario in the catalog: those of the cases of each name. Without a name a case has that of its variant.
fn catalog() -> BTreeMap<String, Vec<(String, String, Option<String>)>> {
    let files = std::fs::read_dir(repository().join("sim/lab/scenarios")).unwrap();
    let scenarios = files.map(|file| {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let scenario: toml::Table = text.parse().unwrap();
        let word =
            |value: Option<&toml::Value>| value.and_then(toml::Value::as_str).map(String::from);
        let cases = scenario["case"].as_array().unwrap().iter().map(|case| {
            let variant = case.get("plan").and_then(|plan| plan.get("variant"));
            let name = word(case.get("name")).or(word(variant));
            let name = name.unwrap_or_else(|| "product".into());
            (
                name,
                word(case.get("expect")).unwrap(),
                word(case.get("property")),
            )
        });
        (word(scenario.get("id")).unwrap(), cases.collect())
    });
    scenarios.collect()
}

fn all() -> impl Iterator<Item = &'static Evidence> {
    let evidence = DEPLOYMENTS
        .iter()
        .flat_map(|deployment| deployment.evidence);
    evidence.copied().flatten()
}

#[test]
fn every_scenario_is_in_the_catalog_with_this_verdict() {
    let catalog = catalog();
    for Evidence {
        scenario,
        case,
        expected,
        ..
    } in all()
    {
        let cases = catalog.get(*scenario);
        let cases = cases.unwrap_or_else(|| panic!("no scenario {scenario}"));
        let found = cases.iter().find(|(name, ..)| name == case);
        let (_, expect, property) = found.unwrap_or_else(|| panic!("no case {case} of {scenario}"));
        let (verdict, of) = expected.words();
        assert_eq!(
            (expect.as_str(), property.as_deref()),
            (verdict, of),
            "{scenario}, {case}"
        );
    }
}

/// The anchor of a heading, as mdBook makes it.
fn anchor(heading: &str) -> String {
    let letters = heading.to_lowercase();
    let letters = letters
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    letters.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn every_page_is_there() {
    let question = question(Kind::Server);
    let advice = Advice::on(&question);
    let pages = DEPLOYMENTS.iter().flat_map(|deployment| deployment.pages);
    for link in pages.chain(&advice.pages) {
        let (name, heading) = link.split_once('#').unwrap_or((link, ""));
        let text = page(name);
        let mut headings = text.lines().filter_map(|line| line.strip_prefix("##"));
        let is_there = headings.any(|text| anchor(text.trim_start_matches('#').trim()) == heading);
        assert!(heading.is_empty() || is_there, "{link}");
    }
}

/// Without markup, and on one line.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        plain.push_str(before);
        let (words, target) = link.split_once(']').unwrap();
        plain.push_str(words);
        rest = match target.strip_prefix('(') {
            Some(target) => target.split_once(')').unwrap().1,
            None => target,
        };
    }
    plain.push_str(rest);
    let plain = plain.replace(['*', '`'], "");
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_rules_and_the_promises_are_those_of_the_page() {
    let page = plain(&page("deployments.md"));
    for rule in print::RULES {
        assert!(page.contains(&plain(rule)), "{rule}");
    }
    let mut promised = 0;
    for deployment in &DEPLOYMENTS {
        promised += u32::from(page.contains(deployment.promise));
        let title = deployment
            .title
            .trim_start_matches("a key of ")
            .trim_start_matches("a row of ");
        assert!(page.contains(title), "{title}");
    }
    // A cluster, a group and a majority of them are described in other words.
    assert_eq!(promised, 5);
}

fn question(kind: Kind) -> Question {
    Question {
        kind,
        servers: 1,
        failover: None,
        persistence: None,
        clocks: None,
        survive: None,
        resource: None,
    }
}

fn ids(evidence: &[&Evidence]) -> Vec<&'static str> {
    evidence.iter().map(|evidence| evidence.scenario).collect()
}

#[test]
fn what_is_known_leaves_out_what_cannot_happen() {
    let mut question = question(Kind::Server);
    let advice = Advice::on(&question);
    assert_eq!(ids(&advice.breaks), ["S5", "S6", "S9", "S2"]);
    assert_eq!(ids(&advice.holds), ["S7", "S10", "S2"]);
    question.persistence = Some(Persistence::Always);
    question.clocks = Some(Clocks::Slewed);
    question.resource = Some(Resource::Compares);
    let advice = Advice::on(&question);
    assert_eq!(ids(&advice.breaks), [""; 0]);
    assert_eq!(ids(&advice.holds), ["S7", "S2"]);
}

#[test]
fn a_lease_is_half_as_long_again_as_what_it_survives() {
    let mut question = question(Kind::Servers);
    question.survive = Some(Duration::from_secs(20));
    assert_eq!(
        Advice::on(&question).settings,
        ["lease = \"30s\"", "longest_lease = \"60s\""]
    );
    question.survive = Some(Duration::from_secs(61));
    question.clocks = Some(Clocks::Stepped);
    let expected = [
        "lease = \"92s\"",
        "longest_lease = \"92s\"",
        "clock_margin = \"92s\"",
    ];
    assert_eq!(Advice::on(&question).settings, expected);
}

/// An operator copies these lines, so none of them may be refused.
#[test]
fn the_settings_are_settings() {
    for survive in [None, Some(1), Some(90), Some(24 * 60 * 60)] {
        let mut question = question(Kind::Server);
        question.survive = survive.map(Duration::from_secs);
        question.clocks = Some(Clocks::Stepped);
        let mut lines = vec!["nodes = [\"redis://127.0.0.1\"]".to_owned()];
        lines.extend(Advice::on(&question).settings);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("quorlock.toml");
        std::fs::write(&path, lines.join("\n")).unwrap();
        let reach = crate::settings::Reach {
            config: Some(path),
            ..Default::default()
        };
        let settings = reach.settings().unwrap();
        let builder = settings.builder.watchdog_lease(settings.lease.unwrap().0);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let made = runtime
            .unwrap()
            .block_on(async { builder.quorum_lazy(["redis://127.0.0.1"]) });
        assert!(made.is_ok(), "{survive:?}: {:?}", made.err());
    }
}

#[derive(Debug, clap::Parser)]
struct Line {
    #[command(flatten)]
    advise: Advise,
}

fn asked(words: &str) -> Result<Option<Question>, Failure> {
    let words = ["advise"].into_iter().chain(words.split_whitespace());
    let line = <Line as clap::Parser>::try_parse_from(words).unwrap();
    line.advise.question()
}

#[test]
fn the_options_choose_the_deployment() {
    for (words, kind) in [
        ("--servers 1", Kind::Server),
        ("--clocks stepped", Kind::Server),
        ("--failover managed", Kind::Replicated),
        ("--failover sentinel", Kind::Group),
        ("--failover cluster", Kind::Cluster),
        ("--servers 3", Kind::Servers),
        ("--servers 3 --failover sentinel", Kind::Groups),
        ("--servers 3 --failover managed", Kind::Groups),
        ("--servers 5 --failover cluster", Kind::Shards),
        ("--store postgres", Kind::Table),
        ("--store mysql --failover managed", Kind::Table),
        ("--store sqlite", Kind::File),
        ("--store etcd", Kind::Etcd),
        ("--store mixed", Kind::Stores),
        ("--store postgres --servers 3", Kind::Stores),
    ] {
        let question = asked(words).unwrap().unwrap();
        assert_eq!(question.kind, kind, "{words}");
    }
    assert!(asked("").unwrap().is_none());
    for words in [
        "--store postgres --failover sentinel",
        "--store etcd --persistence none",
        "--store mixed --servers 1",
    ] {
        assert_eq!(asked(words).unwrap_err().code, Code::USAGE, "{words}");
    }
}

#[test]
fn a_majority_has_an_odd_number_of_nodes() {
    for (servers, says) in [
        (
            2,
            "2: a lock needs 2, and none may fail; take three, of which one may fail",
        ),
        (3, "3: a lock needs 2, and 1 may fail"),
        (
            4,
            "4: a lock needs 3, and 1 may fail, as with one less: take an odd number",
        ),
        (5, "5: a lock needs 3, and 2 may fail"),
    ] {
        let question = Question {
            servers,
            ..question(Kind::Servers)
        };
        assert_eq!(Advice::on(&question).nodes, says);
    }
}

#[test]
fn the_table_has_a_line_for_each_deployment() {
    let table = print::table();
    for deployment in &DEPLOYMENTS {
        assert!(
            table.contains(&format!("\n{}", deployment.title)),
            "{}",
            deployment.title
        );
    }
    assert!(table.contains("a restart without its data (S5)"), "{table}");
}

#[test]
fn the_json_has_what_the_text_has() {
    let lines: Vec<serde_json::Value> = json::table()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let titles = DEPLOYMENTS.iter().map(|deployment| deployment.title);
    assert!(
        titles.eq(lines
            .iter()
            .map(|line| line["deployment"].as_str().unwrap()))
    );
    for deployment in &DEPLOYMENTS {
        let advice = Advice::on(&question(deployment.kind));
        let line: serde_json::Value = serde_json::from_str(&json::advice(&advice)).unwrap();
        assert_eq!(
            line["breaks"].as_array().unwrap().len(),
            advice.breaks.len()
        );
        assert_eq!(line["holds"].as_array().unwrap().len(), advice.holds.len());
        assert_eq!(line["settings"][0], advice.settings[0]);
        for text in [
            advice.deployment.promise,
            &advice.nodes,
            &advice.lease,
            advice.fencing,
        ] {
            let values = line.as_object().unwrap().values();
            assert_eq!(values.filter(|value| *value == text).count(), 1, "{text}");
        }
    }
}
