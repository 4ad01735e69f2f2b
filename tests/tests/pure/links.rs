//! Links between the pages of the documentation. Each must lead to an existing file and to a heading in it.
//!
//! Links to other sites are not followed, because tests do not use the network.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use quorlock_testbed::files::pages;

/// The links of a page, and the identifiers of its headings.
#[derive(Default)]
struct Page {
    links: Vec<String>,
    headings: Vec<String>,
}

/// Returns the identifier that mdBook and forges give to a heading with this text.
pub(crate) fn identifier(heading: &str) -> String {
    let kept = heading.trim().chars().filter_map(|character| {
        if character.is_whitespace() {
            Some('-')
        } else {
            let stays = character.is_alphanumeric() || matches!(character, '-' | '_');
            stays.then(|| character.to_ascii_lowercase())
        }
    });
    kept.collect()
}

fn read(path: &Path) -> Page {
    let text = std::fs::read_to_string(path).expect("a page");
    let mut page = Page::default();
    let mut heading: Option<String> = None;
    for event in Parser::new_ext(&text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                page.headings
                    .extend(heading.take().as_deref().map(identifier));
            }
            Event::Text(part) | Event::Code(part) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&part);
                }
            }
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                page.links.push(dest_url.into_string());
            }
            _ => {}
        }
    }
    page
}

fn markdown(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).expect("a folder");
    let files = files.map(|file| file.expect("a file").path());
    files
        .filter(|path| path.extension().is_some_and(|ending| ending == "md"))
        .collect()
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let root = root.canonicalize().unwrap();
    let mut files = markdown(&root);
    files.extend(pages());
    let pages: BTreeMap<PathBuf, Page> = files
        .into_iter()
        .map(|path| {
            let page = read(&path);
            (path, page)
        })
        .collect();
    let (mut followed, mut broken) = (0, Vec::new());
    for (path, page) in &pages {
        for link in page.links.iter().filter(|link| !link.contains("://")) {
            followed += 1;
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() {
                path.clone()
            } else {
                path.with_file_name(file)
            };
            let found = target.canonicalize().is_ok_and(|target| {
                heading.is_empty()
                    || pages.get(&target).is_some_and(|page| {
                        page.headings.iter().any(|identifier| identifier == heading)
                    })
            });
            if !found {
                broken.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
    assert!(100 < followed, "only {followed} links");
}

/// Checks the test above: it finds a link that leads nowhere.
#[test]
fn identifiers_are_those_of_mdbook() {
    for (heading, expected) in [
        ("Group commit", "group-commit"),
        (
            "What is promised, and what is not",
            "what-is-promised-and-what-is-not",
        ),
        ("`quorlock run`", "quorlock-run"),
        ("It's 5 % off", "its-5--off"),
    ] {
        assert_eq!(identifier(heading), expected);
    }
}
