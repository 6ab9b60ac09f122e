//! Problems as JSON, for editors, CI and `bywash check --json`.

use serde_json::{Value, json};

use crate::problem::{Elsewhere, Problem, Problems};

impl Problems {
    /// Returns the file, its problems, and the number of unlisted ones. Positions count from 1.
    pub fn to_json(&self) -> Value {
        let problems: Vec<Value> = self.iter().map(Problem::to_json).collect();
        json!({ "file": self.file(), "problems": problems, "more": self.more() })
    }
}

impl Problem {
    /// Returns code, severity, message, position, help and the other position.
    pub fn to_json(&self) -> Value {
        json!({
            "code": self.code,
            "severity": self.severity.name(),
            "message": self.message,
            "line": self.line,
            "column": self.column,
            "span": [self.span.start, self.span.end],
            "help": self.help,
            "elsewhere": self.elsewhere.as_ref().map(Elsewhere::to_json),
        })
    }
}

impl Elsewhere {
    fn to_json(&self) -> Value {
        json!({
            "label": self.label,
            "line": self.line,
            "column": self.column,
            "span": [self.span.start, self.span.end],
        })
    }
}
