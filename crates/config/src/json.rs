//! The problems of a file as JSON, for editors, CI and `bywash check --json`.

use serde_json::{Value, json};

use crate::problem::{Elsewhere, Problem, Problems};

impl Problems {
    /// Returns the name of the file, its listed problems, and the number of unlisted ones.
    /// Positions count from 1.
    pub fn to_json(&self) -> Value {
        let problems: Vec<Value> = self.iter().map(Problem::to_json).collect();
        json!({ "file": self.file(), "problems": problems, "more": self.more() })
    }
}

impl Problem {
    /// Returns the code, the severity, the message, the position, the help and the second position.
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
