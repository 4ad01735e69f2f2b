//! The glossary: each word has an anchor, and a page links the hardest words where it uses them first.

use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::links::identifier;

const GLOSSARY: &str = include_str!("../../../docs/src/glossary.md");

/// The words of the project.
const WORDS: &str = "acquisition, campaign, checker, claim, clock margin, drift, embedded node, fault, fencing token, grant, guard, \
    history, hold count, indeterminate, jump, keeper, lease, lost, marker, name, node, orphan, owner, plan, quarantine, quorum, refuse, \
    release, renewal, round, seed, skew, take-over, tally, term, threshold, TTL, validity, verdict, watchdog";

/// The words that a newcomer is least likely to know, and the page that explains each of them at length.
const HARDEST: [(&str, &str); 8] = [
    ("claim version", "safety.md#clock-margin"),
    ("clock margin", "safety.md#clock-margin"),
    ("fencing token", "fencing.md"),
    (
        "indeterminate",
        "safety.md#why-an-answer-decides-and-silence-does-not",
    ),
    ("marker", "safety.md#trust-in-nodes"),
    ("orphan", "architecture.md#ten-decisions"),
    ("quarantine", "safety.md#trust-in-nodes"),
    ("take-over", "safety.md#clock-margin"),
];

/// What newcomers type into the search of the book, and the page that it has to find.
const SEARCHED: [(&str, &str); 5] = [
    ("leader", include_str!("../../../docs/src/leader.md")),
    ("mutex", GLOSSARY),
    ("pessimistic lock", GLOSSARY),
    ("semaphore", GLOSSARY),
    ("setnx", include_str!("../../../docs/src/faq.md")),
];

/// A page without headings and code, in lower case, and which of its parts are links.
struct Prose {
    text: String,
    links: Vec<(Range<usize>, String)>,
}

fn prose(page: &str) -> Prose {
    let mut text = String::new();
    let mut links = Vec::new();
    let mut open = None;
    let mut is_left_out = false;
    for event in Parser::new_ext(page, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { .. } | Tag::CodeBlock(_)) => is_left_out = true,
            Event::End(TagEnd::Heading(_) | TagEnd::CodeBlock) => is_left_out = false,
            Event::Start(Tag::Link { dest_url, .. }) => {
                open = Some((text.len(), dest_url.into_string()));
            }
            Event::End(TagEnd::Link) => {
                if let Some((begin, to)) = open.take() {
                    links.push((begin..text.len(), to));
                }
            }
            Event::Text(part) if !is_left_out => text.push_str(&part.to_lowercase()),
            Event::Code(_) => text.push('`'),
            Event::SoftBreak | Event::HardBreak => text.push(' '),
            Event::End(_) => text.push('\n'),
            _ => {}
        }
    }
    Prose { text, links }
}

/// Returns the hardest words that a page uses first without a link to the glossary, or to the page that explains them. The page
/// that explains a word need not link it.
fn unlinked(name: &str, page: &str) -> Vec<&'static str> {
    let Prose { text, links } = prose(page);
    let mut unlinked = Vec::new();
    for (word, explained) in HARDEST {
        let entry = format!("glossary.md#{}", identifier(word));
        let is_linked = |at: usize| {
            let mut over = links.iter().filter(|(range, _)| range.contains(&at));
            over.any(|(_, to)| [entry.as_str(), explained].contains(&to.trim_start_matches("../")))
        };
        let explains = explained.split('#').next() == Some(name);
        if !explains && text.find(word).is_some_and(|at| !is_linked(at)) {
            unlinked.push(word);
        }
    }
    unlinked
}

#[test]
fn each_word_has_an_anchor() {
    let headings = GLOSSARY
        .lines()
        .filter_map(|line| line.strip_prefix("### "));
    let anchors: Vec<String> = headings.map(identifier).collect();
    let hardest = HARDEST.iter().map(|(word, _)| *word);
    for word in WORDS.split(", ").chain(hardest) {
        assert!(anchors.contains(&identifier(word)), "{word}");
    }
}

#[test]
fn a_page_links_the_hardest_words_where_it_uses_them_first() {
    let mut missing = Vec::new();
    let book = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src");
    for path in quorlock_testbed::files::below(book, "md") {
        let name = path.file_name().unwrap().to_string_lossy();
        if name != "glossary.md" {
            let page = std::fs::read_to_string(&path).unwrap();
            for word in unlinked(&name, &page) {
                missing.push(format!("{}: {word}", path.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

/// Checks the test above: it notices a first use without a link, also over two lines.
#[test]
fn a_first_use_without_a_link_is_noticed() {
    for (page, found) in [
        ("A fencing\ntoken.", vec!["fencing token"]),
        ("A [marker](glossary.md#marker), then a marker.", vec![]),
        (
            "# A marker\n\n`marker`, and an [orphan](glossary.md#node).",
            vec!["orphan"],
        ),
        (
            "| [Take-overs](safety.md#clock-margin) |\n|---|\n| quarantined |",
            vec!["quarantine"],
        ),
    ] {
        assert_eq!(unlinked("page.md", page), found, "{page}");
    }
}

#[test]
fn the_search_of_the_book_finds_what_newcomers_type() {
    for (words, page) in SEARCHED {
        assert!(page.to_lowercase().contains(words), "{words}");
    }
}
