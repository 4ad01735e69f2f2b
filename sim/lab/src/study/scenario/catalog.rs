//! The catalog: the scenarios that are built into the simulator.

use std::path::Path;

use super::{Scenario, ScenarioError, parse};

/// Lists the scenarios by id. Each scenario is a file in the folder `scenarios`.
macro_rules! catalog {
    ($($id:literal)*) => {
        /// The texts of the scenarios, by id.
        const TEXTS: &[(&str, &str)] = &[
            $(($id, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios/", $id, ".toml"))),)*
        ];
    };
}

catalog! {
    "S1" "S2" "S3" "S5" "S6" "S7" "S8" "S9" "S10" "S11" "S12" "S13" "S14" "S15" "S16" "S17" "S18" "S19" "S20" "S21"
    "S22" "S23" "S24" "S25" "S26" "S27" "S28"
    "R1" "R2" "R3" "R4" "R5" "R6" "R8" "R9" "R10" "R11" "R12" "R13" "R14" "R15"
    "R16" "R17" "R18" "R19" "R20" "R21" "R22"
    "M1" "M2" "M3" "M4" "M5" "M6" "M8" "M9"
    "Q1" "Q2" "Q3" "Q4" "Q5" "Q6" "Q7" "Q8" "Q9" "Q10" "Q11" "Q12" "Q13" "Q14" "Q15" "Q16" "Q18" "Q20" "Q21" "Q22"
    "Q23" "Q24" "Q25" "Q26" "Q27" "Q28" "Q29" "Q30" "Q31" "Q33" "Q34" "Q35" "Q36" "Q37" "Q38" "Q39" "Q40"
    "V-A" "V-B" "V-C" "V-D" "V-E" "V-F" "V-G" "V-H" "V-I" "V-J" "V-K" "V-L"
    "F1" "F2"
    "L1" "L2" "L3" "L4" "L5" "L6" "L7" "L8"
    "E1" "E2" "E3" "E4" "E5" "E6"
    "D1" "D2" "D3" "D4" "D5" "D6" "D7" "D8" "D9" "D10"
}

/// Returns all scenarios, in the order of the catalog.
///
/// # Errors
/// Returns an error only if a file of the catalog is wrong. A test reads them all.
pub fn built_in() -> Result<Vec<Scenario>, ScenarioError> {
    TEXTS.iter().map(|(id, text)| read(id, text)).collect()
}

/// Returns the scenario with this id, ignoring case.
///
/// # Errors
/// Returns [`ScenarioError::Unknown`] if there is no such scenario.
pub fn find(id: &str) -> Result<Scenario, ScenarioError> {
    let mut texts = TEXTS.iter();
    let found = texts.find(|(known, _)| known.eq_ignore_ascii_case(id));
    let (id, text) = found.ok_or_else(|| ScenarioError::Unknown(id.to_owned()))?;
    read(id, text)
}

fn read(id: &str, text: &str) -> Result<Scenario, ScenarioError> {
    let name = format!("{id}.toml");
    parse(Path::new(&name), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_folder_is_in_the_catalog_under_its_own_id() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
        let files = std::fs::read_dir(folder).unwrap();
        let mut files: Vec<String> = files
            .map(|file| file.unwrap().path())
            .filter(|path| path.extension().is_some_and(|ext| ext == "toml"))
            .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        files.sort();
        let mut known: Vec<String> = built_in().unwrap().into_iter().map(|s| s.id).collect();
        known.sort();
        assert_eq!(files, known);
    }

    #[test]
    fn every_scenario_says_why_and_who_says_so() {
        for scenario in built_in().unwrap() {
            let id = &scenario.id;
            assert!(!scenario.title.is_empty(), "{id}");
            assert!(40 < scenario.reason.len(), "{id}");
            assert!(!scenario.source.is_empty(), "{id}");
        }
    }
}
