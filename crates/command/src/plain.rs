//! Values of unknown origin as text for a terminal.

use bywash_terminal::text::escaped;
use serde_json::Value;

/// Returns a JSON value [`escaped`]; a text is returned without its quotes.
pub fn plain_value(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => escaped(text),
        other => escaped(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use bywash_terminal::text::is_unsafe;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_has_no_unsafe_character_and_a_text_no_quotes() {
        for hostile in [json!("a\x1b]0;x\x07\u{202e}\r\n"), json!(["\u{9b}2J\u{feff}\u{7f}"])] {
            assert!(!plain_value(&hostile).contains(is_unsafe), "{hostile:?}");
        }
        assert_eq!(plain_value(&json!("it's \"slow\", 買い手")), "it's \"slow\", 買い手");
        assert_eq!(plain_value(&Value::Null), "-");
    }
}
