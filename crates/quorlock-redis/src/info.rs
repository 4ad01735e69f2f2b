//! The reply to `INFO`.

use redis::Value;

/// The lines of a reply to `INFO`.
#[derive(Default)]
pub(crate) struct Info(String);

impl Info {
    #[cfg(test)]
    pub(crate) fn of(text: &str) -> Self {
        Info(text.to_owned())
    }

    /// Adds a section. Returns `false` if the reply is not text.
    pub(crate) fn add(&mut self, section: &Value) -> bool {
        match section {
            Value::BulkString(text) => self.0.push_str(&String::from_utf8_lossy(text)),
            Value::SimpleString(text) | Value::VerbatimString { text, .. } => self.0.push_str(text),
            _ => return false,
        }
        true
    }

    /// Returns the value of a field.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.pairs();
        fields.find_map(|(key, value)| (key == name).then_some(value))
    }

    /// Returns all fields.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (String, String)> {
        let fields = self.pairs();
        fields.map(|(key, value)| (key.to_owned(), value.to_owned()))
    }

    fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        let lines = self.0.lines();
        lines.filter_map(|line| line.trim_end().split_once(':'))
    }
}
