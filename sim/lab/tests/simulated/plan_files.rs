//! Shorthand in plan files, and the errors of wrong files: where the error is, what it is, and what to do.

use std::path::Path;

use quorlock_sim_lab::plan_file::parse;
use quorlock_sim_plan::Plan;

fn read(text: &str) -> Result<Plan, String> {
    parse(Path::new("x.toml"), text).map_err(|error| error.to_string())
}

const FLUSH: &str = "[[faults]]\nkind = \"flush\"\nat = \"1s\"\n";

/// Checks what is told of each text, with its line and column.
fn are_told(wrong: &[(&str, &str)]) {
    let other = wrong.iter().filter_map(|(text, told)| {
        let error = read(text).err().unwrap_or_default();
        (error != format!("x.toml:{told}")).then(|| (text.to_string(), error))
    });
    let other: Vec<_> = other.collect();
    assert!(other.is_empty(), "{other:#?}");
}

#[test]
fn what_is_wrong_with_a_plan_is_told_with_its_line_and_column_and_what_to_do() {
    are_told(&[
        (
            "clients = \n",
            "1:11: string values must be quoted, expected literal string",
        ),
        ("seed = 1\nseed = 2\n", "2:1: duplicate key"),
        (
            "clints = 3",
            "1:1: unknown field `clints`, expected one of `seed`, `duration`, `lane`, `lock`, `variant`, `clients`, \
             `nodes`, `network`, `remedies`, `workload`, `faults`, `outages`, `healed_at`, `progress_within`, `idle_within`, `free_within`, \
             `holds_last`, `not_demanded`; did you mean `clients`?",
        ),
        (
            "[workload]\nwatchdog = \"yes\"",
            "2:12: workload.watchdog: unknown variant `yes`, expected one of `off`, `on`, `half`",
        ),
        (
            "duration = \"fast\"",
            "1:12: duration: \"fast\" is not a duration: write for example 40us, 250ms, 1.5s or 2h",
        ),
        ("\nclients = 0", "2:11: clients: 0 is not between 1 and 60"),
        (
            "not_demanded = [\"fencing\", \"fencing\"]",
            "1:16: not_demanded: fencing is named twice",
        ),
    ]);
}

#[test]
fn what_is_wrong_with_a_fault_is_told_with_its_field() {
    are_told(&[
        (
            &format!("{FLUSH}node = 9"),
            "4:8: faults[0].node: there is no node 9, only 5",
        ),
        (
            FLUSH,
            "3:10: a fault of kind `flush` needs the field `node`",
        ),
        (
            &format!("{FLUSH}node = 0\nevery = \"190ms\""),
            "5:16: a fault that repeats needs the field `times` or `until`",
        ),
        (
            &format!("{FLUSH}node = 0\nevery = \"10us\"\ntimes = 3"),
            "5:9: faults[0].every: 10us is too short: it must be at least 1ms",
        ),
        (
            &format!("{FLUSH}node = 0\nevery = \"10ms\"\ntimes = 0"),
            "6:9: faults[0].times: 0 is not between 1 and 10000",
        ),
        (
            &format!("{FLUSH}node = 0\nevery = \"10ms\"\nuntil = \"1s\""),
            "6:9: faults[0].until: 1s is not after 1s, the first time",
        ),
        (
            &format!("{FLUSH}node = 0\nevery = \"300ms\"\ntimes = 5"),
            "3:6: faults[0].at: it ends at 2.2s, beyond the run (2s)",
        ),
        (
            "[[faults]]\nkind = \"pause-client\"\nclient = \"holder of 1\"\nat = \"0s\"\nlasts = \"1s\"",
            "3:10: faults[0].client: there is no name 1, only 1",
        ),
        (
            "[[faults]]\nkind = \"pause-client\"\nclient = \"holder\"\nat = \"1s\"\nlasts = \"1.1s\"",
            "4:6: faults[0].at: it would last beyond the run (2s), whenever it begins",
        ),
        (
            "[[faults]]\nkind = \"node-step\"\nat = \"1s\"\nnode = 0\nreplica = 0\nby = \"1s\"",
            "5:11: faults[0].replica: there is no replica 0, only 0",
        ),
        (
            "[[faults]]\nkind = \"cut\"\nat = \"1s\"\nlasts = \"1s\"\nclients = [0, 0]",
            "5:11: faults[0].client: client 0 is named twice",
        ),
        (
            "[[faults]]\nkind = \"cut\"\nat = \"1s\"\nlasts = \"1s\"\nnodes = []",
            "5:9: nodes: the list is empty: leave `nodes` out to name all nodes",
        ),
    ]);
}

#[test]
fn what_is_wrong_with_a_trigger_or_a_lane_is_told_with_what_to_do() {
    are_told(&[
        (
            "[[faults]]\nkind = \"flush\"\nnode = 0\nafter = { message = \"renew\", to = \"node 7\" }",
            "4:9: faults[0].after: there is no node 7, only 5",
        ),
        (
            "[[faults]]\nkind = \"flush\"\nnode = 0\nafter = { message = \"renew\", nth = 0 }",
            "4:36: faults[0].after.nth: it counts from 1",
        ),
        (
            "[[faults]]\nkind = \"flush\"\nnode = 0\nafter = { message = \"renewal\" }",
            "4:21: faults[0].after.message: unknown variant `renewal`, expected one of `acquire`, `renew`, `release`, `inspect`, \
             `force-release`, `probe`, `read`, `write`; did you mean `renew`?",
        ),
        (
            "[[faults]]\nkind = \"power-loss\"\nnode = 0\nloses = \"1ms\"\nrestart_after = \"1ms\"\nafter = { message = \"renew\" }",
            "6:9: faults[0].after: what is lost is written before it, so its time must be known: set only at, or at and every",
        ),
        (
            "lane = \"turmoil\"\n[[faults]]\nkind = \"stop-inside\"\nat = \"1s\"\nlasts = \"1ms\"\nclient = 0\nnth = 1",
            "3:8: faults[0]: the lane turmoil has no faults of kind stop-inside: its network only continues after every \
             client has ended its step; use the lane fast",
        ),
        (
            "lane = \"turmoil\"\n[[faults]]\nkind = \"flush\"\nnode = 0\nafter = { message = \"renew\", from = \"node\" }",
            "3:8: faults[0]: the lane turmoil does not read what nodes answer; set from = \"client\" in after, or use \
             the lane fast",
        ),
    ]);
}

#[test]
fn what_is_wrong_with_defaults_and_names_of_faults_is_told() {
    are_told(&[
        (
            &format!("{FLUSH}node = 0\nid = \"a\"\n{FLUSH}node = 1\nid = \"a\""),
            "10:1: another fault has the `id` \"a\": give each its own",
        ),
        (
            "[defaults.pause-clent]\nlasts = \"1s\"",
            "1:11: `pause-clent` is not a kind of fault; did you mean `pause-client`?",
        ),
        (
            "[defaults]\nflush = 3",
            "2:1: the defaults of a kind are a table: write [defaults.flush]",
        ),
        (
            &format!("[defaults.flush]\nlasts = \"1s\"\n{FLUSH}node = 0"),
            "2:1: a fault of kind `flush` has no field `lasts`",
        ),
    ]);
}

#[test]
fn faults_get_the_defaults_of_their_kind_and_links_are_all_links_without_numbers() {
    let short = "clients = 2\nnodes = { count = 3 }\n\
                 [defaults.pause-client]\nlasts = \"110ms\"\nclient = 1\n\
                 [[faults]]\nid = \"p\"\nkind = \"pause-client\"\nat = \"1s\"\n\
                 [[faults]]\nkind = \"pause-client\"\nat = \"1.2s\"\nclient = 0\n\
                 [[faults]]\nkind = \"cut\"\nat = \"1.5s\"\nlasts = \"20ms\"\n\
                 [[faults]]\nkind = \"backup\"\nat = \"1.5s\"\n";
    let told = read(short).expect("it can be run").faults;
    let told: Vec<String> = told.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "client 1 pauses for 110ms",
            "client 0 pauses for 110ms",
            "no message gets through for 20ms between clients 0, 1 and nodes 0, 1, 2",
            "backup of nodes 0, 1, 2",
        ]
    );
}

/// Removes each line, renames each key, and gives each key a value of another type.
fn changed(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let with = |at: usize, line: Option<String>| {
        let changed = lines.iter().enumerate();
        let changed = changed.filter_map(|(index, own)| match index == at {
            true => line.clone(),
            false => Some((*own).to_owned()),
        });
        changed.collect::<Vec<_>>().join("\n")
    };
    let mut all = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        all.push(with(at, None));
        if let Some((key, value)) = line.split_once(" = ") {
            all.push(with(at, Some(format!("zz{line}"))));
            all.push(with(at, Some(format!("{key} = 3.5"))));
            // A list or a table whose parts are removed or wrong.
            if let Some((first, _)) = value.split_once(", ") {
                let closing = if first.starts_with('[') { "]" } else { " }" };
                let is_table = first.starts_with(['[', '{']);
                all.extend(is_table.then(|| with(at, Some(format!("{key} = {first}{closing}")))));
            }
        } else if line.starts_with('[') {
            let name = line.trim_matches(['[', ']']);
            all.push(with(at, Some(line.replace(name, &format!("zz{name}")))));
        }
    }
    all
}

const PLAN: &str = "lock = \"single\"\nclients = 3\nduration = \"3s\"\nnodes = { count = 1, persistence = \"memory\" }\n\
    workload = { lease = \"300ms\", hold_min = \"20ms\", hold_max = \"60ms\" }\n";
const FAULTS: &str = "[[faults]]\nid = \"a\"\nkind = \"crash-node\"\nat = \"500ms\"\nnode = 0\nrestart_after = \"20ms\"\n\
    [[faults]]\nkind = \"cut\"\nat = \"500ms\"\nlasts = \"20ms\"\nclients = [0, 1]\n";
const PROCESS: &str = "[[process]]\nid = \"p\"\nkind = \"pause-client\"\neach = \"client\"\nrate = \"60/h\"\ncommon = 0.5\nlasts = \"uniform(50ms, 1s)\"\n";
const LOCKS: &str = "[[lock]]\nname = \"published\"\nplan = { variant = \"published\" }\n[[lock]]\nname = \"ours\"\n";

/// Every kind of file, each of which can be read.
fn files() -> [(&'static str, String); 4] {
    let faults = FAULTS.replace("[[faults]]", "[[plan.faults]]");
    let drawn = faults.replacen("\"500ms\"", "{ draw = \"uniform(0s, 1s)\" }", 1);
    [
        ("plan", format!("{PLAN}{FAULTS}")),
        (
            "scenario",
            format!(
                "id = \"X1\"\ntitle = \"x\"\n{PLAN}{FAULTS}[[case]]\nexpect = \"breaks\"\nproperty = \"exclusion\"\n\
                     plan = {{ variant = \"published\", faults = {{ change = {{ a = {{ node = 0 }} }} }} }}\n"
            ),
        ),
        (
            "study",
            format!(
                "title = \"x\"\n[plan]\n{PLAN}{drawn}{PROCESS}[grid]\nplan.clients = [2, 3]\n\
                     plan.faults.a.restart_after = {{ from = \"1ms\", to = \"9ms\", points = 2 }}\nprocess.p.common = [0.0, 0.5]\n{LOCKS}"
            ),
        ),
        (
            "deployment",
            format!(
                "horizon = \"1y\"\n[plan]\n{PLAN}{faults}{}{LOCKS}",
                PROCESS.replace("id = \"p\"\n", "")
            ),
        ),
    ]
}

/// Reads a file of a kind. Returns its error.
fn error_of(kind: &str, text: &str) -> Option<String> {
    use quorlock_sim_lab::study::{experiment::Experiment, rate::Deployment, scenario};
    let path = Path::new("x.toml");
    match kind {
        "plan" => read(text).err(),
        "scenario" => scenario::parse(path, text).err().map(|e| e.to_string()),
        "study" => Experiment::parse(path, text).err().map(|e| e.to_string()),
        _ => {
            let read = Deployment::of_lock(path, text, Some("ours"));
            read.err().map(|e| e.to_string())
        }
    }
}

/// An error is where its cause is: at the key that is unknown, at the value that is wrong, or where what is missing can be added. None is at
/// the beginning of the file because nothing better is known.
#[test]
fn every_error_has_its_place_and_only_a_wrong_word_is_at_the_beginning() {
    let mut errors = 0;
    for (kind, text) in files() {
        assert_eq!(error_of(kind, &text), None, "{kind}");
        // Also with the table first, whose place would be the beginning.
        let tables_first = text
            .split_once("\n[")
            .map(|(_, tables)| format!("[{tables}"));
        let texts = changed(&text)
            .into_iter()
            .chain(tables_first.iter().flat_map(|t| changed(t)));
        for text in texts {
            let Some(error) = error_of(kind, &text) else {
                continue;
            };
            errors += 1;
            let place = error.strip_prefix("x.toml:").unwrap_or_default();
            let mut numbers = place.splitn(3, ':').map(str::parse::<usize>);
            let (line, column) = (numbers.next(), numbers.next());
            let (Some(Ok(line)), Some(Ok(column))) = (line, column) else {
                panic!("{kind}: no place: {error}\n{text}");
            };
            let rest = text.lines().nth(line - 1).unwrap_or_default();
            assert!(column <= rest.len() + 1, "{kind}: {error}\n{text}");
            let first = text.split([' ', '.', '\n']).next().unwrap_or_default();
            let is_wrong_word = error.contains(&format!("`{}`", first.trim_matches(['[', ']'])));
            assert!(
                (line, column) != (1, 1) || is_wrong_word,
                "{kind}: {error}\n{text}"
            );
        }
    }
    assert!(150 < errors, "{errors}");
}

/// The error of an empty file has a small one, which can be read.
#[test]
fn an_empty_file_is_called_empty_and_a_small_one_is_shown() {
    for kind in ["scenario", "study", "deployment"] {
        for text in ["", "\n\n", "# nothing\n"] {
            let error = error_of(kind, text).unwrap_or_default();
            let (told, example) = error.split_once("\n\n").unwrap_or_default();
            assert!(
                told.starts_with("x.toml: the file is empty"),
                "{kind}: {error}"
            );
            let read = error_of(kind, example);
            let is_readable = read
                .as_ref()
                .is_none_or(|error| error.contains("leave out --lock"));
            assert!(is_readable, "{kind}: {read:?}");
        }
    }
}
