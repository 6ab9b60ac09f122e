//! Finds the line numbers of the keys in a scenario file.

use toml::de::DeTable;

/// The positions of the keys in the text of a scenario file.
#[derive(Debug, Default)]
pub(crate) struct Lines<'t> {
    table: DeTable<'t>,
    /// The byte offset of the end of each line.
    ends: Vec<usize>,
}

impl<'t> Lines<'t> {
    /// Returns the positions in `text`; no positions if `text` is not valid TOML.
    pub(crate) fn of(text: &'t str) -> Self {
        let table = DeTable::parse(text).map(toml::Spanned::into_inner).unwrap_or_default();
        Self { table, ends: text.match_indices('\n').map(|(at, _)| at).collect() }
    }

    /// Returns the line, from 1, of a key such as `run.rho`; `None` if the text does not have the
    /// key.
    pub(crate) fn key(&self, path: &str) -> Option<usize> {
        let (outer, name) = path.rsplit_once('.').unwrap_or(("", path));
        let mut table = &self.table;
        for name in outer.split('.').filter(|name| !name.is_empty()) {
            table = table.get(name)?.get_ref().as_table()?;
        }
        table.get_key_value(name).map(|(key, _)| self.line(key.span().start))
    }

    /// Returns the line, from 1, of the `index`-th table in a list such as `servers.change`; `None`
    /// if there is no such table.
    pub(crate) fn nth(&self, path: &str, index: usize) -> Option<usize> {
        let mut names = path.split('.');
        let mut value = self.table.get(names.next()?)?;
        for name in names {
            value = value.get_ref().get(name)?;
        }
        value.get_ref().as_array()?.get(index).map(|nth| self.line(nth.span().start))
    }

    fn line(&self, at: usize) -> usize {
        1 + self.ends.partition_point(|end| *end < at)
    }
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
        assert_eq!([lines.key("run.seeds"), lines.key("run")], [None, Some(11)]);
        assert_eq!([0, 1].map(|nth| lines.nth("servers.change", nth)), [5, 7].map(Some));
        assert_eq!(lines.nth("class", 0), Some(9));
        assert_eq!((lines.key("client.think"), lines.nth("class", 1)), (None, None));
        assert_eq!(Lines::of("name = ").key("name"), None);
    }
}
