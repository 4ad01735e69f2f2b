//! One run as text, as a history and as pictures.

use std::collections::BTreeSet;
use std::process::Command;

use super::exploring::failure;
use super::{folder, sim, stderr};

/// Returns the words in backticks in the first cells of a table.
fn first_cells(table: &str) -> BTreeSet<String> {
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `"));
    let cells = rows.filter_map(|row| row.split(" | ").next());
    let words = cells.flat_map(|cell| cell.split(", "));
    words
        .map(|word| word.trim_matches('`').to_owned())
        .collect()
}

#[test]
fn a_history_is_exported_as_json_lines() {
    let folder = folder("history");
    let file = folder.join("history.jsonl");
    let path = file.to_str().unwrap();
    let run = ["run", "--seed", "1", "--workload", "fenced-writes"];
    sim(&[&run[..], &["--history", path]].concat());
    let text = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let (header, lines) = lines.split_first().unwrap();
    let operations = ["acquire", "grant", "use", "store"];
    for operation in operations {
        let is_there = lines.iter().any(|line| line["operation"] == operation);
        assert!(is_there, "{operation}");
    }
    assert!(lines.iter().all(|line| line["invoke"].is_u64()));

    // Every line has the fields that the page documents, and no others.
    let page = include_str!("../../../../../docs/src/simulator.md");
    let section = page
        .split("## Histories for other checkers")
        .nth(1)
        .unwrap();
    let section = section.split("\n## ").next().unwrap();
    let (lines_table, header_table) = section.split_once("| in the header |").unwrap();
    let keys = first_cells(lines_table);
    let of_header = header.as_object().unwrap().keys();
    assert_eq!(
        of_header.cloned().collect::<BTreeSet<_>>(),
        first_cells(header_table)
    );
    assert_eq!(header["seed"], 1);
    for line in lines {
        let said = line.as_object().unwrap().keys();
        assert_eq!(said.cloned().collect::<BTreeSet<_>>(), keys);
        let operation = line["operation"].as_str().unwrap();
        assert!(section.contains(&format!("`{operation}`")), "{operation}");
        let outcome = line["outcome"].as_str().unwrap();
        assert!(section.contains(&format!("`{outcome}`")), "{outcome}");
    }
}

/// Returns whether every element of an XML text is closed in order.
fn is_well_formed(xml: &str) -> bool {
    let mut open = Vec::new();
    for tag in xml.split('<').skip(1) {
        let Some((tag, _)) = tag.split_once('>') else {
            return false;
        };
        let name = tag.split([' ', '\n', '/']).next().unwrap_or("");
        match tag.strip_prefix('/') {
            Some(closed) if open.pop() != Some(closed) => return false,
            Some(_) => {}
            None if tag.ends_with('/') => {}
            None => open.push(name),
        }
    }
    open.is_empty()
}

#[test]
fn a_report_is_one_page_that_needs_nothing_else_and_a_figure_is_one_drawing() {
    let folder = folder("report");
    let file = failure(&folder);
    let page = folder.join("page.html");
    let figure = folder.join("figure.svg");
    let report = ["report", &file, "--json", "-o"];
    let reported = sim(&[&report[..], &[page.to_str().unwrap()]].concat());
    assert_eq!(reported.status.code(), Some(0), "{}", stderr(&reported));
    let page = std::fs::read_to_string(page).unwrap();
    for part in [
        "client 0",
        "node 0",
        "violated",
        "class=\"belief c",
        "class=\"claim c",
        "<ol>",
    ] {
        assert!(page.contains(part), "{part}");
    }
    // The only address is the name of the format, which is not loaded.
    assert_eq!(
        page.matches("http").count(),
        page.matches("http://www.w3.org/2000/svg").count()
    );
    assert!(!page.contains("<script src") && !page.contains("<link") && !page.contains("@import"));

    let drawn = sim(&[&report[..], &[figure.to_str().unwrap(), "--svg"]].concat());
    assert_eq!(drawn.status.code(), Some(0));
    let figure = std::fs::read_to_string(figure).unwrap();
    assert!(is_well_formed(&figure));
    assert!(figure.contains("class=\"message request\""));
    assert!(figure.contains("wrong"));
}

#[test]
fn a_reader_that_goes_away_ends_the_output_and_nothing_else() {
    let out = folder("closed-pipe");
    let out = out.to_str().unwrap();
    let matrix = [
        "matrix", "--runs", "1", "--lock", "ours", "--class", "quiet",
    ];
    for (arguments, code) in [
        (&["run", "--seed", "1"][..], 0),
        (&["run", "--seed", "1", "--plan"], 0),
        (&["run", "S9", "--json"], 2),
        (&["explore", "--seeds", "0..20"], 0),
        (&["explore", "--seeds", "0..20", "--hashes"], 0),
        (&["scenarios", "S9"], 0),
        (&["scenarios", "--list"], 0),
        (&[&matrix[..], &["--out", out]].concat(), 0),
        (&["report", "S9", "-o", &format!("{out}/s9.html")], 0),
        (
            &[
                "shrink",
                "S9",
                "--runs",
                "10",
                "-o",
                &format!("{out}/s9.json"),
            ],
            0,
        ),
        (&["--help"], 0),
    ] {
        // The read end is closed from the beginning.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_quorlock-sim"));
        let ended = command.args(arguments).stdout(writer).output().unwrap();
        assert_eq!(stderr(&ended), "", "{arguments:?}");
        assert_eq!(ended.status.code(), Some(code), "{arguments:?}");
    }
}

#[test]
fn the_story_and_the_page_say_whose_lock_is_shown() {
    let folder = folder("whose");
    let page = folder.join("page.html");
    let page = page.to_str().unwrap();
    let told = |arguments: &[&str]| {
        let output = sim(&[&["run"][..], arguments].concat());
        let reported = sim(&[&["report", "-o", page][..], arguments].concat());
        assert_eq!(reported.status.code(), Some(0), "{}", stderr(&reported));
        let said = String::from_utf8(reported.stdout).unwrap();
        let story = String::from_utf8(output.stdout).unwrap();
        (story, said, std::fs::read_to_string(page).unwrap())
    };
    let (story, said, page) = told(&["Q5", "--case", "published"]);
    let whose = "the simulator&#39;s own, variant published: not the product&#39;s";
    let plain = whose.replace("&#39;", "'");
    assert!(story.starts_with("RedLock on "), "{story}");
    assert!(story.lines().next().unwrap().ends_with(&plain), "{story}");
    assert!(page.contains(&plain) || page.contains(whose));
    for text in [&story, &said] {
        assert!(
            text.contains("violated (variant published, not the product)"),
            "{text}"
        );
    }
    let (story, said, page) = told(&["S9", "--case", "product"]);
    assert!(
        story
            .lines()
            .next()
            .unwrap()
            .ends_with("one node: the product's"),
        "{story}"
    );
    assert!(page.contains("the product&#39;s") || page.contains("the product's"));
    assert!(!said.contains("not the product"), "{said}");
}

#[test]
fn completions_and_man_pages_are_printed_without_what_is_hidden() {
    for shell in ["bash", "zsh", "fish"] {
        let printed = sim(&["completions", shell]);
        let script = String::from_utf8(printed.stdout).unwrap();
        let is_whole = script.contains("scenarios") && !script.contains("chaos-client");
        assert!(printed.status.success() && is_whole, "{shell}");
    }
    let folder = folder("man");
    let written = sim(&["man", "--out", folder.to_str().unwrap()]);
    assert!(written.status.success(), "{}", stderr(&written));
    let page = std::fs::read_to_string(folder.join("quorlock-sim-explore.1")).unwrap();
    assert!(page.contains(r"\-\-keep\-going"), "{page}");
    assert!(!folder.join("quorlock-sim-chaos-client.1").exists());
    let printed = sim(&["man"]).stdout;
    assert!(
        String::from_utf8(printed)
            .unwrap()
            .contains(".TH quorlock-sim")
    );
    let unwritable = sim(&["man", "--out", "/dev/null/man"]);
    assert_eq!(unwritable.status.code(), Some(1));
}

#[test]
fn the_gallery_has_a_page_of_every_case_and_its_index_links_to_each() {
    let folder = folder("gallery");
    let path = folder.to_str().unwrap();
    let shown = sim(&["gallery", path, "S9", "--seeds", "30", "--json"]);
    assert_eq!(shown.status.code(), Some(0), "{}", stderr(&shown));
    let output: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    let index = std::fs::read_to_string(folder.join("index.html")).unwrap();
    let links: BTreeSet<&str> = index
        .split("href=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    assert_eq!(output["pages"], links.len());
    assert!(2 <= links.len(), "{links:?}");
    let files = std::fs::read_dir(&folder).unwrap();
    let mut files: BTreeSet<String> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(files.remove("index.html"));
    assert_eq!(files, links.iter().map(|link| (*link).to_owned()).collect());
    for link in links {
        let page = std::fs::read_to_string(folder.join(link)).unwrap();
        assert!(
            page.contains("const RUN") && page.contains("<p class=\"title\">S9: "),
            "{link}"
        );
    }
    // Cases over sockets have no page, but a row.
    let sockets = sim(&["gallery", path, "R12", "--seeds", "1", "--json"]);
    let output: serde_json::Value = serde_json::from_slice(&sockets.stdout).unwrap();
    assert_eq!(output["pages"], 0);
    assert!(
        std::fs::read_to_string(folder.join("index.html"))
            .unwrap()
            .contains("no page: sockets")
    );
}
