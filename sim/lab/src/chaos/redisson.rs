//! The clients that use Redisson: a program for the JVM, which this command builds when it is first needed.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The sources of the program.
const SOURCES: [(&str, &str); 5] = [
    ("pom.xml", include_str!("redisson/pom.xml")),
    (
        "src/main/java/Client.java",
        include_str!("redisson/src/main/java/Client.java"),
    ),
    (
        "src/main/java/Hold.java",
        include_str!("redisson/src/main/java/Hold.java"),
    ),
    (
        "src/main/java/Reports.java",
        include_str!("redisson/src/main/java/Reports.java"),
    ),
    (
        "src/main/java/Settings.java",
        include_str!("redisson/src/main/java/Settings.java"),
    ),
];

/// Options of the JVM: it starts fast, does not share its counters in a folder of the system, and has its whole heap
/// from the beginning, so that growth is noticed.
const OPTIONS: [&str; 7] = [
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    "-XX:+AlwaysPreTouch",
    "-Xms48m",
    "-Xmx48m",
    "-Djava.io.tmpdir=.",
];

/// Builds the program by Maven unless it is built. Returns the command line that starts a client, without the client's
/// own arguments.
///
/// # Errors
/// Returns a sentence that says what is missing.
pub(crate) fn build() -> Result<Vec<String>, String> {
    needs("java", "a JDK, 17 or newer (Debian: default-jdk-headless)")?;
    let folder = folder()?;
    let classes = folder.join("target/classes");
    let classpath = folder.join("target/classpath");
    let sources: String = SOURCES
        .iter()
        .flat_map(|(name, text)| [*name, *text])
        .collect();
    // This file is written last, so it says that the build was completed.
    let built = folder.join("target/built");
    if std::fs::read_to_string(&built).ok().as_ref() != Some(&sources) {
        needs("mvn", "Maven (Debian: maven)")?;
        compile(&folder)?;
        std::fs::write(&built, &sources).map_err(|error| wrong(&built, &error))?;
    }
    let libraries =
        std::fs::read_to_string(&classpath).map_err(|error| wrong(&classpath, &error))?;
    let mut command = vec!["java".to_owned()];
    command.extend(OPTIONS.map(str::to_owned));
    command.push("-cp".to_owned());
    command.push(format!("{}:{}", classes.display(), libraries.trim()));
    command.push("Client".to_owned());
    Ok(command)
}

/// Returns the folder of the program, which is in the folder into which cargo builds.
fn folder() -> Result<PathBuf, String> {
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let folder = Path::new(&target).join("chaos-redisson");
    std::path::absolute(&folder).map_err(|error| wrong(&folder, &error))
}

fn compile(folder: &Path) -> Result<(), String> {
    for (name, text) in SOURCES {
        let file = folder.join(name);
        let parent = file.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent).map_err(|error| wrong(parent, &error))?;
        std::fs::write(&file, text).map_err(|error| wrong(&file, &error))?;
    }
    let output = Command::new("mvn")
        .args(["--batch-mode", "--quiet", "process-classes", "--file"])
        .arg(folder.join("pom.xml"))
        .output();
    let output = output.map_err(|error| format!("mvn: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stdout);
    let said: Vec<&str> = said.lines().take(20).collect();
    Err(format!(
        "Maven could not get or compile the clients that use Redisson. Without a network it has only what it got before:\n{}",
        said.join("\n")
    ))
}

fn needs(program: &str, what: &str) -> Result<(), String> {
    let version = Command::new(program).arg("-version").output();
    match version {
        Ok(output) if output.status.success() => Ok(()),
        _ => Err(format!(
            "there is no {program} on the PATH: install {what} and start again"
        )),
    }
}

fn wrong(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::super::message::ClientReport;
    use super::*;

    /// A storm does not begin before every client has said that it is connected.
    #[test]
    fn the_program_says_when_it_is_connected() {
        let ready = serde_json::to_string(&ClientReport::Ready).unwrap();
        let says = format!("reports.say({ready}, null)");
        assert!(SOURCES.iter().any(|(_, text)| text.contains(&says)));
    }
}
