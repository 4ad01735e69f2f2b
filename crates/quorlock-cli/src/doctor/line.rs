//! One line of a report.

/// What a line says of its subject.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Level {
    Ok,
    Doubtful,
    /// A server that does not answer, or too few that vote: it may pass.
    Absent,
    /// Settings, a login or rights: it does not pass by itself.
    Misconfigured,
}

impl Level {
    /// The word that is shown.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Doubtful => "doubtful",
            Level::Absent | Level::Misconfigured => "wrong",
        }
    }
}

/// One finding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Line {
    /// What it is about, in one or two words.
    pub(crate) subject: &'static str,
    pub(crate) level: Level,
    pub(crate) text: String,
    /// What to do, one thing a line.
    pub(crate) cures: Vec<String>,
}

impl Line {
    pub(crate) fn new(subject: &'static str, level: Level, text: impl Into<String>) -> Self {
        Line {
            subject,
            level,
            text: text.into(),
            cures: Vec::new(),
        }
    }

    pub(crate) fn ok(subject: &'static str, text: impl Into<String>) -> Self {
        Line::new(subject, Level::Ok, text)
    }

    pub(crate) fn doubtful(subject: &'static str, text: impl Into<String>) -> Self {
        Line::new(subject, Level::Doubtful, text)
    }

    pub(crate) fn cure(mut self, cure: impl Into<String>) -> Self {
        self.cures.push(cure.into());
        self
    }
}

/// Returns the worst level of some lines.
pub(crate) fn worst<'a>(lines: impl Iterator<Item = &'a Line>) -> Level {
    lines.map(|line| line.level).max().unwrap_or(Level::Ok)
}
