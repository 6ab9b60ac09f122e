//! In which line of a scenario file something stands.

use toml::de::{DeTable, DeValue};

/// Where the keys of a text are.
#[derive(Debug, Default)]
pub(crate) struct Lines<'t>(Option<(&'t str, DeTable<'t>)>);

impl<'t> Lines<'t> {
    /// The lines of a text, if it is a table at all.
    pub(crate) fn of(text: &'t str) -> Self {
        Self(DeTable::parse(text).ok().map(|table| (text, table.into_inner())))
    }

    /// The line of a key, as in `run.rho`; where it is not written, that of the table it would be in,
    /// if that is.
    pub(crate) fn key(&self, path: &str) -> Option<usize> {
        let (text, table) = self.0.as_ref()?;
        let (mut table, mut found) = (table, None);
        for name in path.split('.') {
            let Some((key, value)) = table.get_key_value(name) else { break };
            found = Some(key.span().start);
            let DeValue::Table(inside) = value.get_ref() else { break };
            table = inside;
        }
        found.map(|at| line(text, at))
    }

    /// The line of the `index`-th table of a list, as in `servers.change`.
    pub(crate) fn nth(&self, path: &str, index: usize) -> Option<usize> {
        let (text, table) = self.0.as_ref()?;
        let mut names = path.split('.');
        let mut value = table.get(names.next()?)?;
        for name in names {
            value = value.get_ref().get(name)?;
        }
        let nth = value.get_ref().as_array()?.get(index)?;
        Some(line(text, nth.span().start))
    }
}

fn line(text: &str, at: usize) -> usize {
    1 + text.get(..at).map_or(0, |before| before.matches('\n').count())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name = \"x\"

[servers]
workers = 3
[[servers.change]]
at = \"1s\"
[[servers.change]]
at = \"2s\"
[[class]]
name = \"a\"
[run]
rho = [1]
";

    #[test]
    fn keys_and_tables_are_found_where_they_are_written() {
        let lines = Lines::of(TEXT);
        assert_eq!(
            ["name", "servers.workers", "run.rho"].map(|key| lines.key(key)),
            [1, 4, 12].map(Some)
        );
        assert_eq!(lines.key("run.seeds"), lines.key("run"));
        assert_eq!([0, 1].map(|nth| lines.nth("servers.change", nth)), [5, 7].map(Some));
        assert_eq!(lines.nth("class", 0), Some(9));
        assert_eq!((lines.key("client.think"), lines.nth("class", 1)), (None, None));
        assert_eq!(Lines::of("name = ").key("name"), None);
    }
}
