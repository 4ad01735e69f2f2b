//! The start of a run: the nodes agree on their primaries, and every client can work.

use super::clock::{self, START_BOUND};
use super::conductor::Testbed;
use super::other_library::is_other;
use super::records::Records;

/// Waits until every client is connected to the lock, a client of each library has held it, and the nodes agree on their
/// primaries.
///
/// # Errors
/// Returns the clients that are not ready, each with its last error, or the reason why the nodes do not agree.
pub(super) async fn wait(stage: &Testbed) -> Result<(), String> {
    let clients = u16::try_from(stage.seats.len()).unwrap_or(u16::MAX);
    let can_begin = async || {
        let records = stage.reports.records();
        let has_held = 0 < records.holds();
        let have_others_held = stage.beside.is_none() || records.has_won(is_other);
        (records.absent(clients).is_empty() && has_held && have_others_held).then_some(())
    };
    if clock::wait_for(START_BOUND, can_begin).await.is_none() {
        let mut outputs = Vec::new();
        for seat in &stage.seats {
            outputs.push(seat.lock().await.output());
        }
        return Err(why(&stage.reports.records(), &outputs));
    }
    // While the clients started, a loaded machine may have led to an election.
    stage.agree(START_BOUND).await
}

/// Describes what is missing for the run to begin. `outputs` are what the clients wrote to standard output and error.
fn why(records: &Records, outputs: &[String]) -> String {
    let seconds = START_BOUND.as_secs();
    let clients = u16::try_from(outputs.len()).unwrap_or(u16::MAX);
    let absent = records.absent(clients);
    let last = |client: u16| {
        let output = outputs.get(usize::from(client)).map(|text| text.trim());
        match (records.last_failure(client), output.unwrap_or_default()) {
            (Some(error), "") => format!("client {client} (its last error: {error})"),
            (None, "") => format!("client {client} (it reported no error)"),
            (_, output) => {
                let output: String = output.chars().take(300).collect();
                format!("client {client} (it wrote: {output})")
            }
        }
    };
    let said = |clients: Vec<u16>| {
        let said: Vec<String> = clients.into_iter().map(last).collect();
        said.join(", ")
    };
    if absent.is_empty() {
        let all = said((0..clients).collect());
        return format!("no client acquired the lock within {seconds} s: {all}");
    }
    let many = absent.len();
    let absent = said(absent);
    format!("{many} of {clients} clients did not connect to the lock within {seconds} s: {absent}")
}

#[cfg(test)]
mod tests {
    use super::super::message::ClientReport;
    use super::*;
    use quorlock_sim_world::history::Process;

    #[test]
    fn clients_that_do_not_start_are_named_with_their_last_error() {
        let mut records = Records::new(0, vec!["lock-0".to_owned()]);
        let mut hear = |client, said| {
            let process = Process {
                client,
                restarts: 0,
            };
            records.hear(process, said, 1);
        };
        hear(0, ClientReport::Ready);
        hear(1, ClientReport::Failed("refused".to_owned()));
        hear(1, ClientReport::Failed("timed out".to_owned()));
        hear(3, ClientReport::Failed("refused".to_owned()));
        let mut outputs = vec![String::new(); 4];
        outputs[3] = "panicked\n".to_owned();
        let told = why(&records, &outputs);
        assert!(told.starts_with("3 of 4 clients"), "{told}");
        assert!(
            told.contains("client 1 (its last error: timed out)"),
            "{told}"
        );
        assert!(told.contains("client 2 (it reported no error)"), "{told}");
        assert!(told.contains("client 3 (it wrote: panicked)"), "{told}");
        assert!(!told.contains("client 0"), "{told}");
    }

    #[test]
    fn clients_that_are_ready_and_win_nothing_are_named_too() {
        let mut records = Records::new(0, vec!["lock-0".to_owned()]);
        let process = Process {
            client: 0,
            restarts: 0,
        };
        records.hear(process, ClientReport::Ready, 1);
        let told = why(&records, &[String::new()]);
        assert!(told.starts_with("no client acquired the lock"), "{told}");
    }
}
