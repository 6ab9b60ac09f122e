//! Problems for programs: editors, CI, `bywash check --json`.

use serde_json::{Value, json};

use crate::problem::{Elsewhere, Problem, Problems};

impl Problems {
    /// File, problems and how many more there are. Places count from 1.
    pub fn to_json(&self) -> Value {
        let problems: Vec<Value> = self.iter().map(Problem::to_json).collect();
        json!({ "file": self.file(), "problems": problems, "more": self.more() })
    }
}

impl Problem {
    /// Code, severity, message, place, help and the other place.
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
